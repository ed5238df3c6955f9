// Rwgo follows, writes and checks runs from a shell.
//
//	rwgo follow -run ID [-wire sse|jsonl] [-after N] [-full]   prints the run's events, one a line
//	rwgo write  -run ID [-producer ID] [-batch N]              appends the drafts of its standard input, one a line, as they come
//	rwgo check                                                 reads events, one a line, and writes them again
//
// The gateway is -base or RUNWIRE_URL, the bearer token RUNWIRE_TOKEN.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	runwire "runwire.dev/go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rwgo:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say follow, write or check")
	}
	flags := flag.NewFlagSet("rwgo "+args[0], flag.ExitOnError)
	base := flags.String("base", envOr("RUNWIRE_URL", "http://127.0.0.1:4700"), "address of the gateway")
	run := flags.String("run", "", "the run's id")
	wire := flags.String("wire", "sse", "sse or jsonl")
	after := flags.Int64("after", 0, "follow after this seq")
	full := flags.Bool("full", false, "follow every token boundary")
	producer := flags.String("producer", "", "who writes, where it may come back")
	batch := flags.Int("batch", 100, "drafts in one request at most")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if _, known := wires[*wire]; !known {
		return fmt.Errorf("-wire %q is neither sse nor jsonl", *wire)
	}
	if *batch < 1 {
		return fmt.Errorf("-batch %d: a request has one draft at least", *batch)
	}
	if *run == "" && args[0] != "check" {
		return fmt.Errorf("say which run with -run")
	}
	client := &runwire.Client{Base: *base, Token: os.Getenv("RUNWIRE_TOKEN")}
	switch args[0] {
	case "follow":
		return follow(ctx, client, *run, runwire.FollowOptions{After: *after, Full: *full, Wire: wires[*wire], Notice: tell})
	case "write":
		return write(ctx, client.Writer(*run, runwire.WriterOptions{ProducerID: *producer}), os.Stdin, *batch)
	case "check":
		return check(os.Stdin, os.Stdout)
	}
	return fmt.Errorf("%q is none of follow, write and check", args[0])
}

var wires = map[string]runwire.Wire{"sse": runwire.SSE, "jsonl": runwire.JSONL}

func follow(ctx context.Context, client *runwire.Client, run string, options runwire.FollowOptions) error {
	return client.Follow(ctx, run, options, func(e runwire.Event) error {
		return runwire.WriteJSONL(os.Stdout, e)
	})
}

func tell(notice runwire.Notice) {
	switch notice.Kind {
	case runwire.Gap:
		fmt.Fprintf(os.Stderr, "rwgo: events %d to %d were not sent\n", notice.From, notice.To)
	case runwire.Reset:
		fmt.Fprintln(os.Stderr, "rwgo: the log is another one now and comes anew")
	case runwire.Unknown:
		fmt.Fprintf(os.Stderr, "rwgo: skipped event %d of type %q\n", notice.From, notice.Type)
	}
}

// A batch of more than this is sent, however few its lines are.
const batchBytesMax = 1 << 20

// write sends lines as they come: those that come while a request is under way share the next one. While none comes, it
// renews the run's lease.
func write(ctx context.Context, writer *runwire.Writer, in io.Reader, batch int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines := make(chan line, batch)
	go readLines(ctx, in, lines)
	if err := writer.Heartbeat(ctx); err != nil {
		return err
	}
	for hasEnded := false; ; {
		quiet := time.NewTimer(writer.Lease() / 3)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-quiet.C:
			// After its end a run has no lease.
			if hasEnded {
				continue
			}
			if err := writer.Heartbeat(ctx); err != nil {
				return err
			}
		case first, isOpen := <-lines:
			quiet.Stop()
			if !isOpen {
				return nil
			}
			drafts, wrong := gather(first, lines, batch)
			if err := writer.Append(ctx, drafts...); err != nil {
				return err
			}
			if wrong != nil {
				return wrong
			}
			hasEnded = hasEnded || drafts[len(drafts)-1].EndsRun()
		}
	}
}

// line is a draft, or why there is none and no further one.
type line struct {
	draft runwire.Draft
	bytes int
	wrong error
}

func readLines(ctx context.Context, in io.Reader, into chan<- line) {
	defer close(into)
	lines := runwire.NewJSONLReader(in)
	for {
		text, err := lines.Next()
		if err == io.EOF {
			return
		}
		next := line{bytes: len(text), wrong: err}
		if err == nil {
			if next.draft, err = runwire.DecodeDraft(text); err != nil {
				next.wrong = fmt.Errorf("line %d: %w", lines.Line(), err)
			}
		}
		select {
		case into <- next:
		case <-ctx.Done():
			return
		}
		if next.wrong != nil {
			return
		}
	}
}

// gather adds what waits already, up to a batch.
func gather(next line, lines <-chan line, batch int) (drafts []runwire.Draft, wrong error) {
	for bytes := 0; ; {
		if next.wrong != nil {
			return drafts, next.wrong
		}
		drafts = append(drafts, next.draft)
		bytes += next.bytes
		if len(drafts) == batch || bytes >= batchBytesMax {
			return drafts, nil
		}
		var isOpen bool
		select {
		case next, isOpen = <-lines:
		default:
		}
		if !isOpen {
			return drafts, nil
		}
	}
}

func check(in io.Reader, out io.Writer) error {
	events := runwire.NewJSONLReader(in)
	buffered := bufio.NewWriter(out)
	defer buffered.Flush()
	for {
		e, err := events.NextEvent()
		if err == io.EOF {
			return nil
		}
		if err != nil && !runwire.IsUnknownType(err) {
			return err
		}
		if err := runwire.WriteJSONL(buffered, e); err != nil {
			return err
		}
	}
}

func envOr(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
