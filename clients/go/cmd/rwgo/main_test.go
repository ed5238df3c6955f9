package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	runwire "runwire.dev/go"
)

const leaseMS = 30

// served takes batches, says how many drafts each had, and tells every heartbeat the state.
func served(t *testing.T, state string) (writer *runwire.Writer, heartbeats <-chan bool, batches <-chan int) {
	beats, sizes := make(chan bool, 1), make(chan int, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/heartbeat") {
			select {
			case beats <- true:
			default:
			}
		} else {
			var drafts []json.RawMessage
			if err := json.NewDecoder(r.Body).Decode(&drafts); err != nil {
				t.Error(err)
			}
			sizes <- len(drafts)
		}
		fmt.Fprintf(w, `{"state":%q,"lease_ms":%d}`, state, leaseMS)
	}))
	t.Cleanup(server.Close)
	client := &runwire.Client{Base: server.URL}
	return client.Writer("run_1", runwire.WriterOptions{}), beats, sizes
}

func TestALineGoesOutAsItComesAndAQuietRunIsKept(t *testing.T) {
	writer, heartbeats, batches := served(t, "running")
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() { written <- write(context.Background(), writer, in, 100) }()
	for i := 0; i < 3; i++ {
		<-heartbeats
	}
	for _, line := range []string{`{"type":"text.delta","payload":{"text":"a"}}`, `{"type":"run.lifecycle","payload":{"state":"done"}}`} {
		fmt.Fprintln(out, line)
		if size := <-batches; size != 1 {
			t.Error(size)
		}
	}
	out.Close()
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func TestWhatCameBeforeABadLineIsSent(t *testing.T) {
	writer, _, batches := served(t, "running")
	in := strings.NewReader(`{"type":"text.delta","payload":{"text":"a"}}` + "\n{\n")
	err := write(context.Background(), writer, in, 100)
	if err == nil || !strings.HasPrefix(err.Error(), "line 2: ") || <-batches != 1 {
		t.Error(err)
	}
}

func TestTheEndOfARunEndsItsWriter(t *testing.T) {
	writer, _, _ := served(t, "aborted")
	in, _ := io.Pipe()
	if err := write(context.Background(), writer, in, 100); runwire.CodeOf(err) != runwire.CodeEnded {
		t.Error(err)
	}
}

func TestABatchIsCutByCountAndByBytes(t *testing.T) {
	for _, one := range []struct{ bytes, batch, want int }{{10, 100, 50}, {10, 9, 9}, {batchBytesMax / 2, 100, 2}} {
		lines := make(chan line, 50)
		for i := 0; i < 49; i++ {
			lines <- line{bytes: one.bytes}
		}
		drafts, err := gather(line{bytes: one.bytes}, lines, one.batch)
		if len(drafts) != one.want || err != nil {
			t.Error(one, len(drafts), err)
		}
	}
}
