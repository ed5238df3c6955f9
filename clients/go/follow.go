package runwire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Wire is how a stream is framed.
type Wire string

const (
	SSE   Wire = "text/event-stream"
	JSONL Wire = "application/x-ndjson"
)

// Notice is what a log could not say as an event.
type Notice struct {
	Kind NoticeKind
	// From and To are the numbers of what is missing, both included, or of what was skipped.
	From, To int64
	// Type is that of an event that was skipped.
	Type string
}

type NoticeKind int

const (
	// Gap: events were not sent.
	Gap NoticeKind = iota
	// Reset: the server's log is another one now; forget what was read, it comes anew.
	Reset
	// Unknown: an event of a type that this package does not know was skipped.
	Unknown
)

// FollowOptions may be left zero.
type FollowOptions struct {
	// After is the seq to begin after.
	After int64
	// Wire is SSE where it is left out.
	Wire Wire
	// Full asks for every token boundary instead of joined deltas. A cursor belongs to the view it was read from.
	Full bool
	// Notice is told what is no event.
	Notice func(Notice)
	// AttemptsMax is how many connections in a row may bring nothing; 0 follows through any outage.
	AttemptsMax int
	// Random spreads the waits, with numbers in [0, 1).
	Random func() float64
	// silenceMax unless a test is in a hurry.
	silence time.Duration
}

// Follow gives every event of a run once and in order, over any number of connections. It returns nil after the
// terminal event, or where the server says that there is no more; and otherwise what no retry mends, the error of
// each, or that of the context.
func (c *Client) Follow(ctx context.Context, runID string, options FollowOptions, each func(Event) error) error {
	if options.Wire == "" {
		options.Wire = SSE
	}
	if options.Notice == nil {
		options.Notice = func(Notice) {}
	}
	if options.silence == 0 {
		options.silence = silenceMax
	}
	at := newTrack(options.After)
	wait := newBackoff(options.Random)
	// Connections in a row that brought nothing. The back-off counts others, too: those that brought something and broke.
	attempts := 0
	for {
		before := at.cursor
		end := c.connect(ctx, runID, options, at, each)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if end.kind == finished || end.kind == fatal {
			return end.cause
		}
		delay := time.Duration(0)
		attempts++
		if at.cursor != before {
			wait.attempts, attempts = 0, 0
		}
		// A server that leaves is not waited for, unless all it ever does is leave.
		if end.kind == broken || at.cursor == before {
			delay = wait.next()
		}
		if options.AttemptsMax > 0 && attempts >= options.AttemptsMax {
			return end.cause
		}
		if delay < end.after {
			delay = end.after
		}
		if err := pause(ctx, delay); err != nil {
			return err
		}
	}
}

// ending is how one connection ended: leaving is a clean end without a terminal event.
type ending struct {
	kind  endKind
	cause error
	after time.Duration
}

type endKind int

const (
	finished endKind = iota
	leaving
	broken
	fatal
)

// connect reads one connection to its end.
func (c *Client) connect(ctx context.Context, runID string, o FollowOptions, at *track, each func(Event) error) ending {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	header := http.Header{"Accept": {string(o.Wire)}}
	if at.cursor > 0 {
		header.Set("Last-Event-ID", strconv.FormatInt(at.cursor, 10))
	}
	// A server that takes the connection and answers nothing is as silent as one that goes on with nothing.
	unanswered := time.AfterFunc(o.silence, cancel)
	response, err := c.send(ctx, http.MethodGet, runPath(runID, "/stream?"+o.query()), header, nil)
	unanswered.Stop()
	if err != nil {
		return endOf(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNoContent {
		return ending{kind: finished}
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, string(o.Wire)) {
		return ending{kind: fatal, cause: malformed("answered %q, not %s", kind, o.Wire)}
	}
	body := &watched{body: response.Body, silence: o.silence, dead: cancel}
	if o.Wire == JSONL {
		lines := NewJSONLReader(body)
		lines.wholeOnly = true
		return read(lines.Next, at, o, each)
	}
	stream := NewSSEReader(body)
	end := read(func() ([]byte, error) { return nextData(stream) }, at, o, each)
	if end.after == 0 {
		end.after = clamp(stream.retry, 0, retryAfterMax)
	}
	return end
}

func (o FollowOptions) query() string {
	query := url.Values{"dialect": {"koder"}, "backpressure": {"lossless"}}
	if o.Full {
		query.Set("detail", "full")
	}
	return query.Encode()
}

func nextData(stream *SSEReader) ([]byte, error) {
	for {
		message, err := stream.Next()
		if err != nil || message.Event == "" || message.Event == "message" {
			return message.Data, err
		}
	}
}

// read hands on what a connection brings until it has no more, or is of no more use.
func read(next func() ([]byte, error), at *track, o FollowOptions, each func(Event) error) ending {
	for {
		data, err := next()
		if err == io.EOF {
			return ending{kind: leaving, cause: unreachable(errors.New("the server left"))}
		}
		if err != nil {
			return endOf(err)
		}
		e, err := Decode(data)
		if err != nil && !IsUnknownType(err) {
			// After a stream has begun, trouble is told in the stream.
			if told := toldError(data); told != nil {
				return endOf(told)
			}
			return ending{kind: fatal, cause: err}
		}
		switch at.judge(e) {
		case isSeen:
			continue
		case isGap:
			o.Notice(Notice{Kind: Gap, From: at.cursor + 1, To: e.Seq - 1})
		case isReset:
			o.Notice(Notice{Kind: Reset})
			*at = *newTrack(0)
			if e.Seq != 1 {
				// Its beginning went by as duplicates of the old log's: it must be read again.
				return ending{kind: broken, cause: errors.New("the log was reset")}
			}
		}
		at.accept(e)
		if e.Payload == nil {
			o.Notice(Notice{Kind: Unknown, From: e.Seq, To: e.Seq, Type: e.Type})
			continue
		}
		if err := each(e); err != nil {
			return ending{kind: fatal, cause: err}
		}
		if e.EndsRun() {
			return ending{kind: finished}
		}
	}
}

func endOf(err error) ending {
	var told *Error
	if errors.As(err, &told) && !told.Retry {
		return ending{kind: fatal, cause: told}
	}
	end := ending{kind: broken, cause: err}
	var refusal *refused
	if errors.As(err, &refusal) {
		end.cause, end.after = refusal.told, refusal.after
	}
	return end
}

// watched takes a silent connection for dead. It counts only while we wait for the wire: a slow consumer is not the
// server's silence.
type watched struct {
	body    io.Reader
	silence time.Duration
	dead    func()
}

func (w *watched) Read(into []byte) (int, error) {
	timer := time.AfterFunc(w.silence, w.dead)
	defer timer.Stop()
	return w.body.Read(into)
}
