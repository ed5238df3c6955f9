package runwire

import (
	"bytes"
	"errors"
	"io"
)

// JSONLReader reads one JSON text a line. Lines end with LF; one CR before it, blank lines (keep-alives) and a byte
// order mark at the start are ignored; the last line may lack its line break.
type JSONLReader struct {
	lines *lineReader
	line  int
	over  error
	// wholeOnly drops a last line without its line break: on a wire it may be half a line, and comes again.
	wholeOnly bool
}

func NewJSONLReader(in io.Reader) *JSONLReader {
	return &JSONLReader{lines: newLineReader(in, "\n")}
}

// Line is the number of the line that Next gave last, counted from 1.
func (r *JSONLReader) Line() int { return r.line }

// Next gives the next line that is not blank, and io.EOF at a clean end. A line that a broken connection cut off is
// dropped.
func (r *JSONLReader) Next() ([]byte, error) {
	for r.over == nil {
		line, err := r.lines.next()
		r.over = err
		if err != nil && (err != io.EOF || r.wholeOnly) {
			break
		}
		r.line++
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
	return nil, r.over
}

// NextEvent gives the next event. The errors are those of Decode, with their line, and of Next.
func (r *JSONLReader) NextEvent() (Event, error) {
	line, err := r.Next()
	if err != nil {
		return Event{}, err
	}
	e, err := Decode(line)
	var told *Error
	if errors.As(err, &told) {
		told.Line = r.line
	}
	return e, err
}

// WriteJSONL writes one event as one line.
func WriteJSONL(out io.Writer, e Event) error {
	data, err := e.Encode()
	if err != nil {
		return err
	}
	_, err = out.Write(append(data, '\n'))
	return err
}
