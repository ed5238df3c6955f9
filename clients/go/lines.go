package runwire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// lineReader cuts bytes into lines. In SSE a CR alone ends a line too, and ends it at once: the LF that may belong
// to it is looked for only when the next line is asked for, so that no event waits for a byte it does not need.
type lineReader struct {
	in       *bufio.Reader
	breaks   string
	bytesMax int
	begun    bool
	afterCR  bool
}

func newLineReader(in io.Reader, breaks string) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10), breaks: breaks, bytesMax: frameBytesMax}
}

// next gives a line without its break. What is left at the end of the input comes together with io.EOF.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		if _, err := l.in.Peek(1); err != nil {
			return l.whole(line), err
		}
		chunk, _ := l.in.Peek(l.in.Buffered())
		if l.afterCR {
			l.afterCR = false
			if chunk[0] == '\n' {
				l.discard(1)
				continue
			}
		}
		at := bytes.IndexAny(chunk, l.breaks)
		text := chunk
		if at >= 0 {
			text = chunk[:at]
		}
		if len(line)+len(text) > l.bytesMax {
			return nil, tooLarge("a line", l.bytesMax)
		}
		line = append(line, text...)
		if at < 0 {
			l.discard(len(chunk))
			continue
		}
		l.afterCR = chunk[at] == '\r'
		l.discard(at + 1)
		return l.whole(line), nil
	}
}

// whole drops the byte order mark of the first line.
func (l *lineReader) whole(line []byte) []byte {
	if !l.begun {
		l.begun = true
		return bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	return line
}

// discard cannot fail: so many bytes were just seen.
func (l *lineReader) discard(count int) {
	_, _ = l.in.Discard(count)
}

func tooLarge(what string, bytesMax int) error {
	return &Error{Code: CodeTooLarge, Message: fmt.Sprintf("%s is longer than %d bytes", what, bytesMax)}
}
