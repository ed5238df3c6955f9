package runwire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// producerLog stores as a gateway does: by number, once. fail decides per request what goes wrong, and whether before
// or after the batch is stored.
type producerLog struct {
	mutex    sync.Mutex
	epoch    int64
	stored   []string
	requests int
	// What a heartbeat is told.
	state string
	fail  func(request int) (status int, afterStoring bool)
}

func (p *producerLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if strings.Contains(r.URL.Path, "/producers/") {
		fmt.Fprintf(w, `{"producer_id":"p","epoch":%d,"last_producer_seq":%d}`, p.epoch, len(p.stored))
		return
	}
	p.requests++
	status, afterStoring := 0, false
	if p.fail != nil {
		status, afterStoring = p.fail(p.requests)
	}
	if strings.HasSuffix(r.URL.Path, "/events") && (status == 0 || afterStoring) {
		p.store(r)
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	fmt.Fprintf(w, `{"first_pos":1,"last_pos":1,"state":%q,"lease_ms":6000}`, p.state)
}

func (p *producerLog) store(r *http.Request) {
	var drafts []struct {
		Payload struct{ Text string }
	}
	if err := json.NewDecoder(r.Body).Decode(&drafts); err != nil {
		panic(err)
	}
	first, _ := strconv.Atoi(r.Header.Get("Producer-Seq"))
	p.epoch, _ = strconv.ParseInt(r.Header.Get("Producer-Epoch"), 10, 64)
	for i, draft := range drafts {
		if first+i == len(p.stored)+1 {
			p.stored = append(p.stored, draft.Payload.Text)
		}
	}
}

func words(from, to int) (drafts []Draft) {
	for i := from; i <= to; i++ {
		drafts = append(drafts, Draft{Payload: TextDelta{Text: strconv.Itoa(i)}})
	}
	return drafts
}

func upTo(count int) (texts []string) {
	for i := 1; i <= count; i++ {
		texts = append(texts, strconv.Itoa(i))
	}
	return texts
}

func still() float64 { return 0 }

func TestABatchWhoseAnswerWasLostIsStoredOnce(t *testing.T) {
	log := &producerLog{fail: func(request int) (int, bool) {
		return []int{0, 503, 0, 502, 500}[request%5], request%2 == 0
	}}
	server := httptest.NewServer(log)
	defer server.Close()
	writer := (&Client{Base: server.URL}).Writer("run_1", WriterOptions{Random: still})
	for i := 1; i <= 40; i += 4 {
		if err := writer.Append(context.Background(), words(i, i+3)...); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(log.stored, upTo(40)) || log.requests <= 10 {
		t.Error(log.requests, log.stored)
	}
}

func TestABatchThatNobodyAnsweredGoesBeforeTheNext(t *testing.T) {
	for _, afterStoring := range []bool{true, false} {
		log := &producerLog{fail: func(request int) (int, bool) {
			return map[int]int{1: 503, 2: 401}[request], afterStoring && request == 1
		}}
		server := httptest.NewServer(log)
		writer := (&Client{Base: server.URL}).Writer("run_1", WriterOptions{Random: still})
		if err := writer.Append(context.Background(), words(1, 2)...); CodeOf(err) != CodeForeign {
			t.Error(err)
		}
		if err := writer.Append(context.Background(), words(3, 3)...); err != nil {
			t.Error(err)
		}
		if !reflect.DeepEqual(log.stored, upTo(3)) {
			t.Error(afterStoring, log.stored)
		}
		server.Close()
	}
}

func TestABatchThatIsRefusedLeavesItsNumbersToTheNext(t *testing.T) {
	log := &producerLog{fail: func(request int) (int, bool) { return map[int]int{1: 422}[request], false }}
	server := httptest.NewServer(log)
	defer server.Close()
	writer := (&Client{Base: server.URL}).Writer("run_1", WriterOptions{Random: still})
	if err := writer.Append(context.Background(), words(7, 9)...); err == nil {
		t.Error("nobody refused it")
	}
	if err := writer.Append(context.Background(), words(1, 2)...); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(log.stored, upTo(2)) || log.requests != 2 {
		t.Error(log.requests, log.stored)
	}
}

func TestAProducerThatComesBackGoesOnInALaterEpoch(t *testing.T) {
	log := &producerLog{}
	server := httptest.NewServer(log)
	defer server.Close()
	for life, before := 0, int64(0); life < 3; life, before = life+1, log.epoch {
		writer := (&Client{Base: server.URL}).Writer("run_1", WriterOptions{ProducerID: "p", Random: still})
		if err := writer.Append(context.Background(), words(life*2+1, life*2+2)...); err != nil {
			t.Fatal(err)
		}
		if log.epoch <= before {
			t.Error(before, log.epoch)
		}
	}
	if !reflect.DeepEqual(log.stored, upTo(6)) {
		t.Error(log.stored)
	}
}

func TestTwoLivesThatHaveWrittenNothingHaveEpochsOfTheirOwn(t *testing.T) {
	server := httptest.NewServer(&producerLog{})
	defer server.Close()
	var epochs []int64
	for _, chance := range []float64{0.25, 0.75} {
		chance := chance
		writer := (&Client{Base: server.URL}).Writer("run_1", WriterOptions{ProducerID: "p", Random: func() float64 { return chance }})
		if err := writer.takeUp(context.Background()); err != nil {
			t.Fatal(err)
		}
		epochs = append(epochs, writer.options.Epoch)
	}
	if epochs[0] >= epochs[1] || epochs[1] >= 1e15 {
		t.Error(epochs)
	}
}

func TestAHeartbeatTellsTheLeaseAndTheEndOfTheRun(t *testing.T) {
	log := &producerLog{state: "running"}
	server := httptest.NewServer(log)
	defer server.Close()
	writer := (&Client{Base: server.URL}).Writer("run_1", WriterOptions{Random: still})
	if writer.Lease() != leaseDefault {
		t.Error(writer.Lease())
	}
	if err := writer.Heartbeat(context.Background()); err != nil || writer.Lease() != 6*time.Second {
		t.Error(err, writer.Lease())
	}
	log.state = "aborted"
	if err := writer.Heartbeat(context.Background()); CodeOf(err) != CodeEnded {
		t.Error(err)
	}
}

func TestATokenThatCannotBeSentIsSaidOnceAndNotShown(t *testing.T) {
	server := httptest.NewServer(&producerLog{})
	defer server.Close()
	client := &Client{Base: server.URL, Token: "sec\nret"}
	err := client.Writer("run_1", WriterOptions{Random: still}).Heartbeat(context.Background())
	if CodeOf(err) != CodeParameter || strings.Contains(err.Error(), "ret") {
		t.Error(err)
	}
	err = client.Follow(context.Background(), "run_1", FollowOptions{}, func(Event) error { return nil })
	if CodeOf(err) != CodeParameter {
		t.Error(err)
	}
}

func TestARefusalThatAsksForPatienceIsAskedAgain(t *testing.T) {
	log := &producerLog{fail: func(request int) (int, bool) { return map[int]int{1: http.StatusTooManyRequests}[request], false }}
	server := httptest.NewServer(log)
	defer server.Close()
	client := &Client{Base: server.URL}
	if err := client.Writer("run_1", WriterOptions{Random: still}).Heartbeat(context.Background()); err != nil || log.requests != 2 {
		t.Error(err, log.requests)
	}
	if wait := retryAfter("3"); wait.Seconds() != 3 {
		t.Error(wait)
	}
}
