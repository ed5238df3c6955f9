package main

import (
	"context"
	"fmt"
	"log"
	"os"

	runwire "runwire.dev/go"
)

func main() {
	ctx := context.Background()
	client := &runwire.Client{Base: os.Getenv("RUNWIRE_URL"), Token: os.Getenv("RUNWIRE_TOKEN")}
	run, err := client.CreateRun(ctx, map[string]any{"prompt": "Say hello"})
	if err != nil {
		log.Fatal(err)
	}
	writer := client.Writer(run, runwire.WriterOptions{})
	err = writer.Append(ctx,
		runwire.Draft{Payload: runwire.TextDelta{Text: "Hello."}},
		runwire.Draft{Payload: runwire.RunLifecycle{State: runwire.Done}})
	if err != nil {
		log.Fatal(err)
	}
	err = client.Follow(ctx, run, runwire.FollowOptions{}, func(e runwire.Event) error {
		_, err := fmt.Println(e.Seq, e.Type, string(e.Raw))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
