package runwire

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The golden files are those that the TypeScript codec is held to.
func golden(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "packages", "protocol", "fixtures", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}

func TestTheGoldenRunReadsAndWritesBackByteByByte(t *testing.T) {
	types := map[string]bool{}
	for i, line := range golden(t, "run.koder.jsonl") {
		e, err := Decode([]byte(line))
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		types[e.Type] = true
		again, err := e.Encode()
		if err != nil || string(again) != line {
			t.Errorf("line %d:\n got %s, %v\nwant %s", i+1, again, err, line)
		}
	}
	if len(types) != len(payloads) {
		t.Errorf("the golden run has %d of %d types", len(types), len(payloads))
	}
}

func TestATypedPayloadHoldsEveryMemberOfTheGoldenRun(t *testing.T) {
	for i, line := range golden(t, "run.koder.jsonl") {
		e, err := Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		var typed object
		e.Payload.write(&typed)
		text, err := typed.end()
		if err != nil {
			t.Fatal(err)
		}
		if !sameJSON(t, text, e.Raw) {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, text, e.Raw)
		}
		e.Raw = nil
		again, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil || !reflect.DeepEqual(back.Payload, e.Payload) {
			t.Errorf("line %d: %#v, %v, not %#v", i+1, back.Payload, err, e.Payload)
		}
	}
}

func TestAnEventOfAnotherDialectKeepsWhatTheKoderDialectDoesNotName(t *testing.T) {
	unknown := 0
	for i, line := range golden(t, "run.runwire.jsonl") {
		e, err := Decode([]byte(line))
		if IsUnknownType(err) {
			unknown++
			if e.Payload != nil || e.ID == "" {
				t.Errorf("line %d: an unknown type must have numbers and no typed payload: %+v", i+1, e)
			}
		} else if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if e.Seq == 0 {
			t.Fatalf("line %d has no seq", i+1)
		}
		again, err := e.Encode()
		if err != nil || string(again) != line {
			t.Errorf("line %d:\n got %s, %v\nwant %s", i+1, again, err, line)
		}
	}
	if want := len(golden(t, "run.runwire.jsonl")) - len(golden(t, "run.koder.jsonl")); unknown != want {
		t.Errorf("%d events are not core, not %d", unknown, want)
	}
}

func TestTheExamplesOfTheProtocolAreUnderstood(t *testing.T) {
	types := map[string]bool{}
	for i, line := range golden(t, "agent-stream.jsonl") {
		draft, err := DecodeDraft([]byte(line))
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		types[draft.Type] = true
		again, err := draft.Encode()
		if err != nil || string(again) != line {
			t.Errorf("line %d:\n got %s, %v\nwant %s", i+1, again, err, line)
		}
	}
	if len(types) != 8 {
		t.Errorf("there are eight core types, not %d", len(types))
	}
}

func TestTheReadmeShowsTheExampleThatIsCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join("example", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(readme, append(append([]byte("```go\n"), example...), "```\n"...)) {
		t.Error("README.md and example/main.go have drifted apart")
	}
}

// sameJSON compares values; lone surrogates are the same to encoding/json, which is why Raw is kept.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(valueOf(t, a), valueOf(t, b))
}

func valueOf(t *testing.T, text []byte) (value any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
