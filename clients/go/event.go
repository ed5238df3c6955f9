package runwire

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"
)

// Event is one entry of a run's log.
//
// Raw is the payload as it was read, and what Encode writes: encoding/json replaces a lone surrogate by U+FFFD and
// cannot tell 1.0 from 1, so a typed payload alone could not give back what came. Payload is the same, typed.
type Event struct {
	ID    string
	TS    string
	Type  string
	RunID string
	// ChildID is the run that produced it, where that is a descendant of RunID; otherwise "".
	ChildID string
	Seq     int64
	// Payload is nil where this package does not know the type. Members it does not know are in its Rest.
	Payload Payload
	Raw     json.RawMessage
	// Rest has the members of the envelope that the koder dialect does not name, such as pos.
	Rest map[string]json.RawMessage
}

// Draft is what a producer says; the server makes an event of it.
type Draft struct {
	// ChildID is the live descendant that says it, or "".
	ChildID string
	Payload Payload
	// Type and Raw say what has no typed payload here; they count only where Payload is nil.
	Type string
	Raw  json.RawMessage
	// Rest has its other members, such as scope.
	Rest map[string]json.RawMessage
}

// EndsRun says whether the run ends with this event. The end of a child ends no parent.
func (e Event) EndsRun() bool {
	change, ok := e.Payload.(RunLifecycle)
	return ok && e.ChildID == "" && change.State.IsFinal()
}

// EndsRun says whether the run ends with this draft.
func (d Draft) EndsRun() bool {
	payload := d.Payload
	if payload == nil {
		payload, _, _ = decodePayload(d.Type, d.Raw, draftBounds)
	}
	return Event{ChildID: d.ChildID, Payload: payload}.EndsRun()
}

// Decode reads one event, strictly. Of a type that is not core it gives the event without a typed payload and an
// error for which IsUnknownType holds; every other error is KAI-STREAM-PROTO-0001 and comes with no event.
func Decode(data []byte) (Event, error) {
	in, err := envelope(data)
	if err != nil {
		return Event{}, err
	}
	e := Event{
		ID:      in.id("id", required),
		TS:      in.time("ts"),
		Type:    in.text("type", required),
		RunID:   in.id("run_id", required),
		ChildID: in.id("child_id", optional),
		Seq:     in.count("seq", required),
		Raw:     in.raw("payload"),
	}
	if in.wrong == "" && e.Seq == 0 {
		in.refuse("seq", "a whole number from 1")
	}
	if in.wrong != "" {
		return Event{}, malformed("%s", in.wrong)
	}
	// An absent child is written as null, which is how it may have been read.
	delete(in.rest, "child_id")
	e.Rest = in.left()
	e.Payload, e.Raw, err = decodePayload(e.Type, e.Raw, readBounds)
	if err != nil && !IsUnknownType(err) {
		return Event{}, err
	}
	return e, err
}

// DecodeDraft reads what a producer says. Types that are not core are kept in Raw.
func DecodeDraft(data []byte) (Draft, error) {
	in, err := envelope(data)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Type: in.text("type", required), ChildID: in.id("child_id", optional), Raw: in.raw("payload")}
	if in.wrong != "" {
		return Draft{}, malformed("%s", in.wrong)
	}
	d.Rest = in.left()
	if _, d.Raw, err = decodePayload(d.Type, d.Raw, draftBounds); err != nil && !IsUnknownType(err) {
		return Draft{}, err
	}
	return d, nil
}

// Encode writes an event as one line of JSON without its line break, in the order of the protocol.
func (e Event) Encode() ([]byte, error) {
	raw, err := rawPayload(e.Payload, e.Raw)
	if err != nil {
		return nil, err
	}
	var out object
	out.put("id", e.ID)
	out.put("ts", e.TS)
	out.put("type", e.Type)
	out.put("run_id", e.RunID)
	out.put("child_id", nullOr(e.ChildID))
	out.put("seq", e.Seq)
	out.put("payload", raw)
	out.rest(e.Rest)
	return out.end()
}

// Encode writes a draft as one line of JSON without its line break.
func (d Draft) Encode() ([]byte, error) {
	name, raw := d.Type, d.Raw
	if d.Payload != nil {
		name, raw = d.Payload.Type(), nil
	}
	raw, err := rawPayload(d.Payload, raw)
	if err != nil {
		return nil, err
	}
	var out object
	out.put("type", name)
	out.put("payload", raw)
	out.optional("child_id", d.ChildID)
	out.rest(d.Rest)
	return out.end()
}

func envelope(data []byte) (*members, error) {
	if !utf8.Valid(data) {
		return nil, malformed("not UTF-8")
	}
	if !json.Valid(data) {
		return nil, malformed("not JSON")
	}
	in := membersOf(data)
	if in == nil {
		return nil, malformed("must be a JSON object with `type` and `payload`")
	}
	return in, nil
}

// The compact text of a payload, so that it fits on one line whatever white space it came with.
func decodePayload(name string, raw json.RawMessage, most bounds) (Payload, json.RawMessage, error) {
	in := membersOf(raw)
	if in == nil {
		return nil, nil, malformed("`payload` must be an object")
	}
	if wrong := most.unfit(raw); wrong != "" {
		return nil, nil, malformed("`payload` %s", wrong)
	}
	var text bytes.Buffer
	if err := json.Compact(&text, raw); err != nil {
		return nil, nil, malformed("`payload`: %v", err)
	}
	read, known := payloads[name]
	if !known {
		return nil, text.Bytes(), &Error{Code: CodeUnknownType, Message: strconv.Quote(name) + " is not a core type"}
	}
	payload := read(in)
	if in.wrong != "" {
		return nil, nil, malformed("%s: %s", name, in.wrong)
	}
	return payload, text.Bytes(), nil
}

func rawPayload(payload Payload, raw json.RawMessage) (json.RawMessage, error) {
	if raw != nil {
		return raw, nil
	}
	if payload == nil {
		return nil, malformed("an event without a payload")
	}
	var out object
	payload.write(&out)
	return out.end()
}

func nullOr(id string) any {
	if id == "" {
		return nil
	}
	return id
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)
var timePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$`)

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && timePattern.MatchString(text)
}
