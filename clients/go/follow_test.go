package runwire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// script serves one answer per connection and keeps what was asked.
type script struct {
	answers []func(http.ResponseWriter)
	asked   []*http.Request
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r)
	if len(s.asked) > len(s.answers) {
		http.Error(w, "the script is over", http.StatusTeapot)
		return
	}
	s.answers[len(s.asked)-1](w)
}

func says(blocks ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", string(SSE))
		for _, block := range blocks {
			fmt.Fprint(w, block)
		}
	}
}

func cutAfter(blocks ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		says(blocks...)(w)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func block(seq int, id, name, payload string) string {
	return fmt.Sprintf("id: %d\ndata: {\"id\":\"%s\",\"ts\":\"2026-05-14T19:42:13Z\",\"type\":\"%s\",\"run_id\":\"run_1\",\"child_id\":null,\"seq\":%d,\"payload\":%s}\n\n",
		seq, id, name, seq, payload)
}

func word(seq int) string { return block(seq, fmt.Sprint("evt_", seq), "text.delta", `{"text":"x"}`) }
func done(seq int) string {
	return block(seq, fmt.Sprint("evt_", seq), "run.lifecycle", `{"state":"done"}`)
}

func followed(t *testing.T, after int64, answers ...func(http.ResponseWriter)) (ids []string, notices []Notice, s *script, err error) {
	t.Helper()
	s = &script{answers: answers}
	server := httptest.NewServer(s)
	defer server.Close()
	client := &Client{Base: server.URL + "/", Token: "secret"}
	options := FollowOptions{
		After:  after,
		Random: func() float64 { return 0 },
		Notice: func(n Notice) { notices = append(notices, n) },
	}
	err = client.Follow(context.Background(), "run_1", options, func(e Event) error {
		ids = append(ids, e.ID)
		return nil
	})
	return ids, notices, s, err
}

func lastEventIDs(s *script) (ids []string) {
	for _, request := range s.asked {
		ids = append(ids, request.Header.Get("Last-Event-ID"))
	}
	return ids
}

func TestAReaderCutOffMidRunGetsEveryEventOnce(t *testing.T) {
	ids, notices, s, err := followed(t, 0,
		cutAfter(word(1), word(2), "id: 3\ndata: {\"id\":"),
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		says("retry: 1\n\n", word(3)),
		says(word(2), word(3), word(4), done(5), word(6)),
	)
	if err != nil || len(notices) > 0 || !reflect.DeepEqual(ids, []string{"evt_1", "evt_2", "evt_3", "evt_4", "evt_5"}) {
		t.Error(ids, notices, err)
	}
	if sent := lastEventIDs(s); !reflect.DeepEqual(sent, []string{"", "2", "2", "3"}) {
		t.Errorf("sent %q", sent)
	}
	for _, request := range s.asked {
		if request.Header.Get("Authorization") != "Bearer secret" || request.URL.Path != "/v1/agent/runs/run_1/stream" {
			t.Error(request.URL, request.Header)
		}
	}
}

func TestALineThatACleanEndCutOffComesAgain(t *testing.T) {
	line := func(seq int, name, payload string) string {
		_, data, _ := strings.Cut(block(seq, fmt.Sprint("evt_", seq), name, payload), "data: ")
		return strings.TrimSuffix(data, "\n")
	}
	first, last := line(1, "text.delta", `{"text":"x"}`), line(2, "run.lifecycle", `{"state":"done"}`)
	lines := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", string(JSONL))
			fmt.Fprint(w, text)
		}
	}
	s := &script{answers: []func(http.ResponseWriter){lines(first + last[:40]), lines(last)}}
	server := httptest.NewServer(s)
	defer server.Close()
	ids := []string{}
	options := FollowOptions{Wire: JSONL, Random: func() float64 { return 0 }}
	err := (&Client{Base: server.URL}).Follow(context.Background(), "run_1", options, func(e Event) error {
		ids = append(ids, e.ID)
		return nil
	})
	if err != nil || !reflect.DeepEqual(ids, []string{"evt_1", "evt_2"}) {
		t.Error(ids, err)
	}
	if sent := lastEventIDs(s); !reflect.DeepEqual(sent, []string{"", "1"}) {
		t.Errorf("sent %q", sent)
	}
}

func TestAGapIsToldAndTheEndOfAChildEndsNothing(t *testing.T) {
	child := `id: 4
data: {"id":"evt_4","ts":"2026-05-14T19:42:13Z","type":"run.lifecycle","run_id":"run_1","child_id":"run_2","seq":4,"payload":{"state":"done"}}

`
	ids, notices, _, err := followed(t, 0, says(word(1), child, block(5, "evt_5", "odd.type", "{}"), done(6)))
	want := []Notice{{Kind: Gap, From: 2, To: 3}, {Kind: Unknown, From: 5, To: 5, Type: "odd.type"}}
	if err != nil || !reflect.DeepEqual(notices, want) || !reflect.DeepEqual(ids, []string{"evt_1", "evt_4", "evt_6"}) {
		t.Error(ids, notices, err)
	}
}

func TestALogThatWasResetIsReadAnewFromItsBeginning(t *testing.T) {
	other := func(seq int) string { return block(seq, fmt.Sprint("new_", seq), "text.delta", `{"text":"y"}`) }
	ids, notices, s, err := followed(t, 0,
		cutAfter(word(1), word(2)),
		says(other(2)),
		says(other(1), other(2), done(3)),
	)
	if err != nil || !reflect.DeepEqual(notices, []Notice{{Kind: Reset}}) ||
		!reflect.DeepEqual(ids, []string{"evt_1", "evt_2", "new_1", "new_2", "evt_3"}) {
		t.Error(ids, notices, err)
	}
	if sent := lastEventIDs(s); !reflect.DeepEqual(sent, []string{"", "2", ""}) {
		t.Errorf("sent %q", sent)
	}
}

func TestFollowingStopsWhereThereIsNoMore(t *testing.T) {
	if ids, _, s, err := followed(t, 5, func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }); err != nil ||
		len(ids) > 0 || len(s.asked) != 1 || lastEventIDs(s)[0] != "5" {
		t.Error(ids, err)
	}
	gone := func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"error":{"code":"KAI-STREAM-CONN-0002","message":"replay window expired","retry":false}}`)
	}
	_, _, s, err := followed(t, 0, gone)
	var told *Error
	if !errors.As(err, &told) || told.Code != "KAI-STREAM-CONN-0002" || told.Status != 410 || len(s.asked) != 1 {
		t.Error(err, len(s.asked))
	}
	page := func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }
	if _, _, _, err := followed(t, 0, page); CodeOf(err) != CodeMalformed {
		t.Error(err)
	}
	if _, _, _, err := followed(t, 0, says("data: {\"error\":{\"code\":\"KAI-AUTH-X-0001\",\"message\":\"no\"}}\n\n")); CodeOf(err) != "KAI-AUTH-X-0001" {
		t.Error(err)
	}
}

func TestAServerThatIsSilentBeforeItsAnswerOrAfterItIsLeftForAnother(t *testing.T) {
	asked := make(chan *http.Request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		switch len(asked) {
		case 1:
			<-r.Context().Done()
		case 2:
			says(word(1))(w)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			says(done(2))(w)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	options := FollowOptions{Random: func() float64 { return 0 }, silence: 100 * time.Millisecond}
	events := 0
	err := (&Client{Base: server.URL}).Follow(ctx, "run_1", options, func(Event) error {
		events++
		return nil
	})
	if err != nil || events != 2 || len(asked) != 3 {
		t.Error(err, events, len(asked))
	}
}

func TestFollowingCountsNoAttemptThatBroughtSomething(t *testing.T) {
	cut := func(event string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			says(event)(w)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	server := httptest.NewServer(&script{answers: []func(http.ResponseWriter){cut(word(1)), cut(word(2)), says(done(3))}})
	defer server.Close()
	options := FollowOptions{AttemptsMax: 1, Random: func() float64 { return 0 }}
	events := 0
	err := (&Client{Base: server.URL}).Follow(context.Background(), "run_1", options, func(Event) error {
		events++
		return nil
	})
	if err != nil || events != 3 {
		t.Error(err, events)
	}
}

func TestFollowingEndsWithItsContextItsConsumerAndItsPatience(t *testing.T) {
	server := httptest.NewServer(&script{answers: []func(http.ResponseWriter){says(word(1), done(2))}})
	client := &Client{Base: server.URL}
	enough := errors.New("enough")
	if err := client.Follow(context.Background(), "run_1", FollowOptions{}, func(Event) error { return enough }); err != enough {
		t.Error(err)
	}
	server.Close()
	options := FollowOptions{AttemptsMax: 3, Random: func() float64 { return 0 }}
	if err := client.Follow(context.Background(), "run_1", options, nil); CodeOf(err) != CodeUnreachable {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := client.Follow(ctx, "run_1", FollowOptions{}, nil); err != context.Canceled {
		t.Error(err)
	}
}
