package runwire

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Message is one block of an SSE stream that carries data.
type Message struct {
	// ID is the last event id of the stream at this point, "" for none.
	ID string
	// Event is "" for the default, "message".
	Event string
	Data  []byte
}

// SSEReader reads server-sent events as the WHATWG standard has them: lines end with CR, LF or CRLF, a byte order
// mark and comments are ignored, several data lines are joined, and a block that the end cuts off is dropped.
type SSEReader struct {
	lines  *lineReader
	lastID string
	// retry is how long the server asks to wait before the next connection.
	retry time.Duration
}

func NewSSEReader(in io.Reader) *SSEReader {
	return &SSEReader{lines: newLineReader(in, "\r\n")}
}

// LastEventID is what a reader sends back to go on from here.
func (r *SSEReader) LastEventID() string { return r.lastID }

// Next gives the next message that has data, and io.EOF at a clean end.
func (r *SSEReader) Next() (Message, error) {
	var data []byte
	var event string
	id, hasData := r.lastID, false
	for {
		line, err := r.lines.next()
		if err != nil {
			return Message{}, err
		}
		if len(line) == 0 {
			r.lastID = id
			if hasData {
				return Message{ID: id, Event: event, Data: data[:len(data)-1]}, nil
			}
			event = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if len(data)+len(value) > r.lines.bytesMax {
				return Message{}, tooLarge("a block", r.lines.bytesMax)
			}
			hasData = true
			data = append(append(data, value...), '\n')
		case "event":
			event = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 32); err == nil {
				r.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// NextEvent gives the next event, and skips messages that are none. The errors are those of Decode and of Next.
func (r *SSEReader) NextEvent() (Event, error) {
	for {
		message, err := r.Next()
		if err != nil {
			return Event{}, err
		}
		if message.Event == "" || message.Event == "message" {
			return Decode(message.Data)
		}
	}
}

// WriteSSE writes one event as one block.
func WriteSSE(out io.Writer, e Event) error {
	data, err := e.Encode()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "id: %d\ndata: %s\n\n", e.Seq, data)
	return err
}
