package runwire

import (
	"errors"
	"fmt"
)

// The codes that this package tells by itself. Those of a server come through as they are.
const (
	CodeMalformed   = "KAI-STREAM-PROTO-0001"
	CodeUnknownType = "KAI-STREAM-PROTO-0002"
	CodeTooLarge    = "KAI-REQUEST-SIZE-0001"
	CodeParameter   = "KAI-STREAM-PARAM-0001"
	CodeEnded       = "KAI-RUN-ENDED-0001"
	CodeUnreachable = "KAI-STREAM-CONN-0003"
	CodeForeign     = "KAI-STREAM-CONN-0004"
)

// Error is everything that can be wrong with a stream or a request. Branch on Code, never on the text.
type Error struct {
	Code    string
	Message string
	// Line is where it was read, counted from 1; 0 where there are no lines.
	Line int
	// Status is the HTTP status it came with, or 0.
	Status int
	// Retry says whether the same request may succeed later.
	Retry bool
}

func (e *Error) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Line)
	}
	return fmt.Sprintf("%s %s%s", e.Code, where, e.Message)
}

// IsUnknownType says whether an event was refused only for its type: it has its numbers and may be skipped.
func IsUnknownType(err error) bool {
	return CodeOf(err) == CodeUnknownType
}

// CodeOf gives the code of an error, or "" where it has none.
func CodeOf(err error) string {
	var told *Error
	if errors.As(err, &told) {
		return told.Code
	}
	return ""
}

func malformed(format string, values ...any) *Error {
	return &Error{Code: CodeMalformed, Message: fmt.Sprintf(format, values...)}
}
