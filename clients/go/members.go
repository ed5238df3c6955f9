package runwire

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// Objects are read member by member and not into structs: encoding/json would take "Text" for "text", and forget
// what it does not know.
//
// What was read and says something is taken out of rest. A member that is null or empty stays there, because the
// zero value of its field could not tell it from an absent one; so an object is always its fields plus its rest.
type members struct {
	rest map[string]json.RawMessage
	// wrong says what the first member that is not as it must be should have been; "" if all is well.
	wrong string
}

type presence bool

const (
	required presence = true
	optional presence = false
)

// membersOf gives nil where the text is no object.
func membersOf(text []byte) *members {
	var rest map[string]json.RawMessage
	if err := json.Unmarshal(text, &rest); err != nil || rest == nil {
		return nil
	}
	return &members{rest: rest}
}

func (m *members) refuse(name, must string) {
	if m.wrong == "" {
		m.wrong = "`" + name + "` must be " + must
	}
}

// into reads a member into a pointer and says whether there was something to read.
func (m *members) into(name string, need presence, must string, value any, holds func() bool) bool {
	text, there := m.rest[name]
	if !there || string(text) == "null" {
		if need == required {
			m.refuse(name, must)
		}
		return false
	}
	if json.Unmarshal(text, value) != nil || !holds() {
		m.refuse(name, must)
		return false
	}
	return true
}

func (m *members) take(name string, need presence, saysSomething bool) {
	if need == required || saysSomething {
		delete(m.rest, name)
	}
}

func (m *members) text(name string, need presence) (text string) {
	if m.into(name, need, "a string", &text, always) {
		m.take(name, need, text != "")
	}
	return text
}

func (m *members) id(name string, need presence) (id string) {
	if m.into(name, need, "an id", &id, func() bool { return idPattern.MatchString(id) }) {
		m.take(name, need, true)
	}
	return id
}

func (m *members) time(name string) (text string) {
	if m.into(name, required, "an RFC 3339 time", &text, func() bool { return isTime(text) }) {
		m.take(name, required, true)
	}
	return text
}

func (m *members) oneOf(name string, need presence, must string, values ...string) (text string) {
	if m.into(name, need, must, &text, func() bool { return contains(values, text) }) {
		m.take(name, need, true)
	}
	return text
}

func (m *members) flag(name string) (flag bool) {
	if m.into(name, required, "true or false", &flag, always) {
		m.take(name, required, true)
	}
	return flag
}

// number keeps the digits that were sent.
func (m *members) number(name string) (number json.Number) {
	text := m.rest[name]
	if m.into(name, optional, "a number", &number, func() bool { return text[0] != '"' && isFinite(number) }) {
		m.take(name, optional, true)
	}
	return number
}

func (m *members) count(name string, need presence) int64 {
	var number float64
	whole := func() bool { return number >= 0 && number <= countMax && number == math.Trunc(number) }
	if m.into(name, need, "a whole number from 0", &number, whole) {
		m.take(name, need, number != 0)
	}
	return int64(number)
}

func (m *members) texts(name string) (texts []string) {
	var items []*string
	// Into pointers, because encoding/json reads null into a string as "".
	if !m.into(name, optional, "an array of strings", &items, func() bool { return items != nil }) {
		return nil
	}
	for _, item := range items {
		if item == nil {
			m.refuse(name, "an array of strings")
			return nil
		}
		texts = append(texts, *item)
	}
	m.take(name, optional, len(texts) > 0)
	return texts
}

// raw takes any value, null too.
func (m *members) raw(name string) json.RawMessage {
	text := m.rest[name]
	delete(m.rest, name)
	return text
}

// object writes the members of a JSON object in the order they are put.
type object struct {
	text    bytes.Buffer
	written map[string]bool
	failure error
}

func (o *object) put(name string, value any) {
	if o.written == nil {
		o.written = map[string]bool{}
		o.text.WriteByte('{')
	} else {
		o.text.WriteByte(',')
	}
	o.written[name] = true
	o.encode(name)
	o.text.WriteByte(':')
	o.encode(value)
}

func (o *object) optional(name string, text string) {
	if text != "" {
		o.put(name, text)
	}
}

// rest writes what has no field of its own; a field that was set since wins.
func (o *object) rest(rest map[string]json.RawMessage) {
	for _, name := range sortedNames(rest) {
		if !o.written[name] {
			o.put(name, rest[name])
		}
	}
}

func (o *object) encode(value any) {
	encoder := json.NewEncoder(&o.text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		if o.failure == nil {
			o.failure = malformed("%v", err)
		}
		return
	}
	// The encoder ends every value with a line break.
	o.text.Truncate(o.text.Len() - 1)
}

func (o *object) end() ([]byte, error) {
	if o.failure != nil {
		return nil, o.failure
	}
	if o.written == nil {
		return []byte("{}"), nil
	}
	o.text.WriteByte('}')
	return o.text.Bytes(), nil
}

// bounds are what a payload may have.
type bounds struct{ depthMax, keysMax int }

var (
	draftBounds = bounds{jsonDepthMax, jsonKeysMax}
	// A server joins deltas and hands on conversations, so its events may have more than a draft: as many keys as a frame
	// has room for.
	readBounds = bounds{readDepthMax, math.MaxInt}
)

// unfit says what is wrong with a JSON text that is well-formed: too deep, too many keys, or a number no double holds.
func (b bounds) unfit(text []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	depth, keys := 0, 0
	var inObject []bool
	isKey := false
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		switch value := token.(type) {
		case json.Delim:
			if value == '{' || value == '[' {
				depth++
				inObject = append(inObject, value == '{')
			} else {
				depth--
				inObject = inObject[:depth]
			}
			isKey = depth > 0 && inObject[depth-1]
			if depth > b.depthMax {
				return "is nested deeper than " + strconv.Itoa(b.depthMax)
			}
			continue
		case string:
			if isKey {
				keys++
				isKey = false
				if keys > b.keysMax {
					return "has more than " + strconv.Itoa(b.keysMax) + " keys"
				}
				continue
			}
		case json.Number:
			if !isFinite(value) {
				return "holds a number that overflows"
			}
		}
		isKey = depth > 0 && inObject[depth-1]
	}
}

func isFinite(number json.Number) bool {
	_, err := number.Float64()
	return err == nil
}

func always() bool { return true }
