package runwire

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// WriterOptions may be left zero.
type WriterOptions struct {
	// ProducerID is given by a producer that may come back after a crash; otherwise one is made up.
	ProducerID string
	// Epoch shuts out lower ones. Where it is 0, it is above those of all lives that began before.
	Epoch int64
	// AttemptsMax is how often a request may fail in a row; 0 tries until the context ends.
	AttemptsMax int
	// Random spreads the waits and tells lives apart, with numbers in [0, 1).
	Random func() float64
}

// Writer appends to a run. Every batch carries Producer-Id, Producer-Epoch and Producer-Seq, so one whose answer was
// lost is sent again and stored once. It may be used by several goroutines; their batches go one after another.
type Writer struct {
	client  *Client
	runID   string
	options WriterOptions

	// In nanoseconds, as the last heartbeat was told; 0 before.
	lease atomic.Int64

	mutex   sync.Mutex
	takenUp bool
	stored  int64
	// A batch that nobody answered: it may be stored, so it goes first, and its numbers are never used for another.
	open *batch
}

type batch struct {
	body  []byte
	count int64
}

// Writer writes the run from here on.
func (c *Client) Writer(runID string, options WriterOptions) *Writer {
	return &Writer{client: c, runID: runID, options: options}
}

// Append stores the drafts as one batch, whole or not at all, and returns when they are on disk. Where the server
// refuses the batch itself (400, 409, 413, 422), nothing of it is stored. After any other error, such as the end of the
// context, it may be: the next Append sends it again first.
func (w *Writer) Append(ctx context.Context, drafts ...Draft) error {
	body := bytes.NewBufferString("[")
	for i, draft := range drafts {
		text, err := draft.Encode()
		if err != nil {
			return err
		}
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(text)
	}
	body.WriteByte(']')
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.open != nil {
		if err := w.settle(ctx); err != nil {
			return err
		}
	}
	if len(drafts) == 0 {
		return nil
	}
	w.open = &batch{body.Bytes(), int64(len(drafts))}
	return w.settle(ctx)
}

// Heartbeat renews the run's lease, as every append does. A run that nobody renews for its lease_ms (30 s where the
// run was created without) ends as an error. Of a run that has ended, whoever ended it, the error is CodeEnded.
func (w *Writer) Heartbeat(ctx context.Context) error {
	var told struct {
		State   State `json:"state"`
		LeaseMS int64 `json:"lease_ms"`
	}
	err := w.persist(ctx, func() error {
		return w.client.ask(ctx, http.MethodPost, runPath(w.runID, "/heartbeat"), nil, []byte("{}"), &told)
	})
	if err != nil {
		return err
	}
	if told.State.IsFinal() {
		return &Error{Code: CodeEnded, Message: w.runID + " is " + string(told.State)}
	}
	w.lease.Store(told.LeaseMS * int64(time.Millisecond))
	return nil
}

// Lease is how long the run lives without a word of its writers: what the last Heartbeat learnt, or 30 s.
func (w *Writer) Lease() time.Duration {
	if lease := w.lease.Load(); lease > 0 {
		return time.Duration(lease)
	}
	return leaseDefault
}

// settle sends the open batch until it is answered.
func (w *Writer) settle(ctx context.Context) error {
	err := w.persist(ctx, func() error {
		if err := w.takeUp(ctx); err != nil {
			return err
		}
		header := http.Header{}
		header.Set("Producer-Id", w.options.ProducerID)
		header.Set("Producer-Epoch", strconv.FormatInt(w.options.Epoch, 10))
		header.Set("Producer-Seq", strconv.FormatInt(w.stored+1, 10))
		return w.client.ask(ctx, http.MethodPost, runPath(w.runID, "/events"), header, w.open.body, &json.RawMessage{})
	})
	if err == nil {
		w.stored += w.open.count
	}
	if err == nil || refusesBatch(err) {
		w.open = nil
	}
	return err
}

// refusesBatch holds for statuses that every attempt at this batch would have got. A 401 on the second attempt says
// nothing about the first.
func refusesBatch(err error) bool {
	var told *Error
	if !errors.As(err, &told) || told.Retry {
		return false
	}
	switch told.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// takeUp learns who writes: a made-up producer is new by itself, a named one asks how far its last life came.
func (w *Writer) takeUp(ctx context.Context) error {
	if w.takenUp {
		return nil
	}
	if w.options.ProducerID == "" {
		id := make([]byte, 12)
		if _, err := rand.Read(id); err != nil {
			return err
		}
		w.options.ProducerID = "go-" + hex.EncodeToString(id)
		if w.options.Epoch == 0 {
			w.options.Epoch = 1
		}
		w.takenUp = true
		return nil
	}
	var last struct {
		Epoch int64 `json:"epoch"`
		Seq   int64 `json:"last_producer_seq"`
	}
	path := runPath(w.runID, "/producers/"+url.PathEscape(w.options.ProducerID))
	if err := w.client.ask(ctx, http.MethodGet, path, nil, nil, &last); err != nil {
		return err
	}
	if w.options.Epoch == 0 {
		w.options.Epoch = w.epochAfter(last.Epoch)
	}
	// Numbers go on across epochs.
	w.stored, w.takenUp = last.Seq, true
	return nil
}

// epochAfter goes by the time: a life before this one may have written nothing yet, so that the last epoch would be
// followed by the same for both, and neither would be shut out. Chance tells apart what a clock does not.
func (w *Writer) epochAfter(last int64) int64 {
	if now := time.Now().UnixMilli() * livesMax; last < now {
		last = now
	}
	return last + 1 + int64(newBackoff(w.options.Random).random()*livesMax)
}

// persist asks until there is an answer, or a refusal that asking again would not change.
func (w *Writer) persist(ctx context.Context, ask func() error) error {
	wait := newBackoff(w.options.Random)
	for {
		err := ask()
		end := endOf(err)
		if err == nil || end.kind == fatal {
			return end.cause
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		delay := wait.next()
		if w.options.AttemptsMax > 0 && wait.attempts >= w.options.AttemptsMax {
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
