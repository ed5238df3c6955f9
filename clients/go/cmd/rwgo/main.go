// Rwgo follows, writes and checks runs from a shell.
//
//	rwgo follow -run ID [-wire sse|jsonl] [-after N] [-full]   prints the run's events, one a line
//	rwgo write  -run ID [-producer ID] [-batch N]              appends the drafts of its standard input, one a line
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
	batch := flags.Int("batch", 100, "drafts in one request")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if _, known := wires[*wire]; !known {
		return fmt.Errorf("-wire %q is neither sse nor jsonl", *wire)
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

func write(ctx context.Context, writer *runwire.Writer, in io.Reader, batch int) error {
	lines := runwire.NewJSONLReader(in)
	var drafts []runwire.Draft
	for {
		line, err := lines.Next()
		if err == io.EOF {
			return writer.Append(ctx, drafts...)
		}
		if err != nil {
			return err
		}
		draft, err := runwire.DecodeDraft(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", lines.Line(), err)
		}
		drafts = append(drafts, draft)
		if len(drafts) < batch {
			continue
		}
		if err := writer.Append(ctx, drafts...); err != nil {
			return err
		}
		drafts = drafts[:0]
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
