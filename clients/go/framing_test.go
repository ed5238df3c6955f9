package runwire

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func sseMessages(in io.Reader) (messages []Message, lastID string, err error) {
	stream := NewSSEReader(in)
	for {
		message, err := stream.Next()
		if err != nil {
			return messages, stream.LastEventID(), err
		}
		messages = append(messages, message)
	}
}

const oddStream = "\xEF\xBB\xBF: hello\r\nid: 1\r\ndata: {\"a\":\rdata:1}\n\r\n" +
	"retry: 70\nid: 2\n\n" +
	"event: snapshot\rdata\rdata: \xe2\x82\xac \r\r" +
	"event: lost\n\nid: 3\x00\ndata:  two\nnonsense: x\ndata\n\n" +
	"id\ndata: last\n\nid: 9\ndata: cut"

var oddMessages = []Message{
	{ID: "1", Data: []byte("{\"a\":\n1}")},
	{ID: "2", Event: "snapshot", Data: []byte("\n€ ")},
	{ID: "2", Data: []byte(" two\n")},
	{ID: "", Data: []byte("last")},
}

func TestAStreamReadsTheSameWhereverItsBytesAreCut(t *testing.T) {
	check := func(how string, in io.Reader) {
		messages, lastID, err := sseMessages(in)
		if err != io.EOF || lastID != "" || !reflect.DeepEqual(messages, oddMessages) {
			t.Errorf("%s: %q, last id %q, %v", how, messages, lastID, err)
		}
	}
	check("byte by byte", iotest.OneByteReader(strings.NewReader(oddStream)))
	for at := 0; at <= len(oddStream); at++ {
		check(fmt.Sprint("cut at ", at), io.MultiReader(strings.NewReader(oddStream[:at]), strings.NewReader(oddStream[at:])))
	}
}

func TestTheGoldenRunAsSSEReadsTheSameUnderEveryCut(t *testing.T) {
	var events []Event
	var wire bytes.Buffer
	for _, line := range golden(t, "run.koder.jsonl") {
		e, err := Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
		if err := WriteSSE(&wire, e); err != nil {
			t.Fatal(err)
		}
		wire.WriteString(": keepalive\n\n")
	}
	text := wire.String()
	for at := 0; at <= len(text); at++ {
		// Two parts of one stream read like the whole; the first part alone reads like its complete blocks.
		if at%16 == 0 {
			heard, err := sseEvents(io.MultiReader(strings.NewReader(text[:at]), strings.NewReader(text[at:])))
			if err != io.EOF || !reflect.DeepEqual(heard, events) {
				t.Fatalf("cut at %d: %d events, %v", at, len(heard), err)
			}
		}
		messages, _, err := sseMessages(strings.NewReader(text[:at]))
		if want := strings.Count(text[:at], "}\n\n"); err != io.EOF || len(messages) != want {
			t.Fatalf("ended at %d: %d messages, not %d, %v", at, len(messages), want, err)
		}
	}
}

func sseEvents(in io.Reader) (events []Event, err error) {
	stream := NewSSEReader(in)
	for {
		e, err := stream.NextEvent()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestAnEventIsGivenBeforeTheLineBreakThatMayFollowItsCR(t *testing.T) {
	in, out := io.Pipe()
	go func() { _, _ = out.Write([]byte("data: now\r\r")) }()
	// The pipe stays open: a reader that waits for one byte more would wait for ever.
	message, err := NewSSEReader(in).Next()
	if err != nil || string(message.Data) != "now" {
		t.Error(message, err)
	}
}

func TestLinesReadTheSameWhereverTheyAreCut(t *testing.T) {
	text := "\xEF\xBB\xBF\n{\"a\":1}\r\n \r\n{\"b\":\"\r\u2028\"}\n\n{\"c\":3}"
	want := []string{`{"a":1}`, "{\"b\":\"\r\u2028\"}", `{"c":3}`}
	for at := 0; at <= len(text); at++ {
		in := NewJSONLReader(io.MultiReader(strings.NewReader(text[:at]), strings.NewReader(text[at:])))
		var lines []string
		for {
			line, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
		if !reflect.DeepEqual(lines, want) || in.Line() != 6 {
			t.Fatalf("cut at %d: %q, line %d", at, lines, in.Line())
		}
	}
}

func TestALineThatABrokenConnectionCutOffIsDropped(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("1\n2"), iotest.ErrReader(io.ErrUnexpectedEOF))
	in := NewJSONLReader(broken)
	if line, err := in.Next(); string(line) != "1" || err != nil {
		t.Error(line, err)
	}
	for i := 0; i < 2; i++ {
		if line, err := in.Next(); line != nil || err != io.ErrUnexpectedEOF {
			t.Error(line, err)
		}
	}
}

func TestALineWithoutEndIsRefusedBeforeItIsReadToItsEnd(t *testing.T) {
	endless := readerFunc(func(into []byte) (int, error) {
		for i := range into {
			into[i] = 'x'
		}
		return len(into), nil
	})
	lines := NewJSONLReader(endless)
	lines.lines.bytesMax = 1 << 20
	if _, err := lines.Next(); CodeOf(err) != CodeTooLarge {
		t.Error(err)
	}
	blocks := NewSSEReader(&repeating{text: "data: 0123456789\n"})
	blocks.lines.bytesMax = 1 << 16
	if _, err := blocks.Next(); CodeOf(err) != CodeTooLarge {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(into []byte) (int, error) { return f(into) }

type repeating struct {
	text string
	rest string
}

func (r *repeating) Read(into []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.text
	}
	count := copy(into, r.rest)
	r.rest = r.rest[count:]
	return count, nil
}
