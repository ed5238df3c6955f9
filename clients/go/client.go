package runwire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client is where a gateway is and how to be let in.
type Client struct {
	// Base is its address, as in "http://127.0.0.1:4700".
	Base string
	// Token is sent as a bearer token, if there is one.
	Token string
	// HTTP makes the requests; http.DefaultClient where it is nil. It must have no Timeout: streams are long.
	HTTP *http.Client
}

// CreateRun begins a run that this process, or another one, writes. Members of asked are those of
// POST /v1/agent/runs, such as prompt, agent, session_id and lease_ms.
func (c *Client) CreateRun(ctx context.Context, asked map[string]any) (runID string, err error) {
	body := map[string]any{"producer": "external"}
	for name, value := range asked {
		body[name] = value
	}
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	var made struct {
		RunID string `json:"run_id"`
	}
	err = c.ask(ctx, http.MethodPost, "/v1/agent/runs", nil, text, &made)
	return made.RunID, err
}

// ask makes one plain request and reads its JSON answer.
func (c *Client) ask(ctx context.Context, method, path string, header http.Header, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerMax)
	defer cancel()
	response, err := c.send(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return unreachable(err)
	}
	if json.Unmarshal(text, into) != nil {
		return &Error{Code: CodeForeign, Message: path + " answered something that is not JSON", Status: response.StatusCode}
	}
	return nil
}

// send gives an answer whose status is 2xx, and everything else as an *Error.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Base, "/")+path, bytes.NewReader(body))
	if err != nil || (request.URL.Scheme != "http" && request.URL.Scheme != "https") {
		return nil, &Error{Code: CodeForeign, Message: strconv.Quote(c.Base) + " is no address of a server"}
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	// A compressed stream would sit in somebody's buffer.
	request.Header.Set("Accept-Encoding", "identity")
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for name, values := range request.Header {
		for _, value := range values {
			if !isSendable(value) {
				// Its value may be a secret, and asking again would not mend it.
				return nil, &Error{Code: CodeParameter, Message: "the header " + name + " cannot be sent: it takes visible characters on one line"}
			}
		}
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, unreachable(err)
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	return response, nil
}

func isSendable(value string) bool {
	for i := 0; i < len(value); i++ {
		if char := value[i]; (char < ' ' && char != '\t') || char == 0x7f {
			return false
		}
	}
	return true
}

// refused is an *Error with the wait that the server asked for.
type refused struct {
	told  *Error
	after time.Duration
}

func (r *refused) Error() string { return r.told.Error() }
func (r *refused) Unwrap() error { return r.told }

func refusal(response *http.Response) error {
	// A proxy's HTML, or nothing: then the status says enough.
	text, _ := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	told := toldError(text)
	if told == nil {
		status := response.StatusCode
		told = &Error{Code: CodeForeign, Message: fmt.Sprintf("HTTP %d", status)}
		if status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500 {
			told.Code, told.Retry = CodeUnreachable, true
		}
	}
	told.Status = response.StatusCode
	return &refused{told, retryAfter(response.Header.Get("Retry-After"))}
}

// toldError is the error that {"error":{code,message,retry}} tells, or nil.
func toldError(text []byte) *Error {
	var body struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Retry   bool   `json:"retry"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &body) != nil || body.Error == nil || body.Error.Code == "" {
		return nil
	}
	return &Error{Code: body.Error.Code, Message: body.Error.Message, Retry: body.Error.Retry}
}

func unreachable(cause error) error {
	return &Error{Code: CodeUnreachable, Message: cause.Error(), Retry: true}
}

func retryAfter(field string) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(field, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(field); err == nil {
		wait = time.Until(at)
	}
	return clamp(wait, 0, retryAfterMax)
}

// backoff is exponential with full jitter, so that a thousand clients that lost the same server do not come back in
// the same moment.
type backoff struct {
	attempts int
	random   func() float64
}

func newBackoff(random func() float64) *backoff {
	if random == nil {
		random = rand.New(rand.NewSource(time.Now().UnixNano())).Float64
	}
	return &backoff{random: random}
}

func (b *backoff) next() time.Duration {
	ceiling := backoffMax
	if b.attempts < 16 {
		ceiling = clamp(backoffFirst<<b.attempts, 0, backoffMax)
	}
	b.attempts++
	return time.Duration(b.random() * float64(ceiling))
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func clamp(value, low, high time.Duration) time.Duration {
	if value < low {
		return low
	}
	if value > high {
		return high
	}
	return value
}

func runPath(runID, rest string) string {
	return "/v1/agent/runs/" + url.PathEscape(runID) + rest
}
