package runwire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func eventLine(name, payload string) string {
	return `{"id":"evt_1","ts":"2026-05-14T19:42:13.124Z","type":"` + name + `","run_id":"run_1","child_id":null,"seq":7,"payload":` + payload + `}`
}

func TestWhatIsOddSurvives(t *testing.T) {
	for _, payload := range []string{
		`{"text":"\u0000\ud800\udc00\ud83d x \u2028` + "\u2028" + `<&>\"\\"}`,
		`{"text":"","call_id":null,"n":12345678901234567890.10,"m":1.0,"e":1E+2,"z":-0}`,
		`{"text":"x","Text":"y","TEXT":3,"__proto__":{"a":[]},"":{}}`,
	} {
		line := eventLine("text.delta", payload)
		e, err := Decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := e.Encode(); err != nil || string(again) != line {
			t.Errorf("got %s, %v\nwant %s", again, err, line)
		}
		e.Raw = nil
		again, err := e.Encode()
		if err != nil || !sameJSON(t, again, []byte(line)) {
			t.Errorf("typed:\n got %s, %v\nwant %s", again, err, line)
		}
	}
}

func TestAFieldThatWasSetWinsOverWhatWasReadEmpty(t *testing.T) {
	e, err := Decode([]byte(eventLine("run.lifecycle", `{"state":"done","reason":null,"dropped_count":0,"x":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	change := e.Payload.(RunLifecycle)
	change.Reason = "enough"
	text, err := (Draft{Payload: change}).Encode()
	want := `{"type":"run.lifecycle","payload":{"state":"done","reason":"enough","dropped_count":0,"x":1}}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestEveryFieldOfEveryTypeIsWrittenAndReadBack(t *testing.T) {
	rest := Rest{"extra": json.RawMessage(`{"deep":[1,2.50]}`)}
	for _, payload := range []Payload{
		ReasoningDelta{"hm", "call_1", rest},
		TextDelta{"a\u2028b", "call_1", rest},
		ToolStart{CallID: "call_1", Tool: "shell", SkillID: "s@1.0.0", Input: json.RawMessage(`{"cmd":"ls"}`), Rest: rest},
		ToolEnd{CallID: "call_1", OK: true, Output: json.RawMessage(`null`), DurationMS: "1.50", BlobRef: "blob_1", Rest: rest},
		ToolEnd{CallID: "call_1", Error: &Failure{Code: "KAI-X-Y-0001", Message: "no", Rest: rest}},
		ToolEnd{CallID: "call_1", Error: &Failure{Code: "KAI-X-Y-0001", Bare: true}},
		StepBoundary{StepIndex: 0, StepKind: "fan-in", CheckpointID: "ckpt_1", Rest: rest},
		ChildSpawn{ChildID: "run_2", Prompt: "dig", ToolsAllowed: []string{"a", ""}, Rest: rest},
		PlanProposal{Plan{"plan_1", "run_1", []PlanStep{{"s1", "t", "edit", []string{"x"}, "0.020", rest}}, "1e-2", rest}, rest},
		RunLifecycle{State: Failed, Reason: "why", DroppedCount: 3, Rest: rest},
	} {
		text, err := Event{ID: "evt_1", TS: "2026-05-14T19:42:13Z", Type: payload.Type(), RunID: "run_1", Seq: 1, Payload: payload}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(text)
		if err != nil || !reflect.DeepEqual(back.Payload, payload) {
			t.Errorf("%s\n got %#v, %v\nwant %#v", text, back.Payload, err, payload)
		}
	}
}

func TestWhatIsMalformedIsRefusedByName(t *testing.T) {
	deep := strings.Repeat(`{"a":`, readDepthMax) + "{}" + strings.Repeat("}", readDepthMax)
	good := eventLine("text.delta", `{"text":"x"}`)
	for line, names := range map[string]string{
		`{`:                                      "not JSON",
		"\"\xff\"":                               "not UTF-8",
		`[]`:                                     "JSON object",
		`null`:                                   "JSON object",
		strings.Replace(good, `"id"`, `"ID"`, 1): "`id`",
		strings.Replace(good, `evt_1`, `evt 1`, 1):                                                        "`id`",
		strings.Replace(good, `2026-05`, `2026-13`, 1):                                                    "`ts`",
		strings.Replace(good, `"run_1"`, `7`, 1):                                                          "`run_id`",
		strings.Replace(good, `null`, `""`, 1):                                                            "`child_id`",
		strings.Replace(good, `:7`, `:0`, 1):                                                              "`seq`",
		strings.Replace(good, `:7`, `:1.5`, 1):                                                            "`seq`",
		strings.Replace(good, `:7`, `:"7"`, 1):                                                            "`seq`",
		strings.Replace(good, `"text.delta"`, `null`, 1):                                                  "`type`",
		eventLine("text.delta", `[]`):                                                                     "`payload` must be an object",
		eventLine("text.delta", `{}`):                                                                     "`text`",
		eventLine("text.delta", `{"text":null}`):                                                          "`text`",
		eventLine("text.delta", `{"text":"x","call_id":"a b"}`):                                           "`call_id`",
		eventLine("text.delta", `{"text":"x","n":1e999}`):                                                 "overflows",
		eventLine("text.delta", `{"text":"x","d":`+deep+`}`):                                              "deeper than 256",
		eventLine("tool.end", `{"call_id":"c","ok":"yes"}`):                                               "`ok`",
		eventLine("tool.end", `{"call_id":"c","ok":true,"duration_ms":"3"}`):                              "`duration_ms`",
		eventLine("tool.end", `{"call_id":"c","ok":false,"error":{"code":1}}`):                            "`error`",
		eventLine("tool.end", `{"call_id":"c","ok":false,"error":3}`):                                     "`error`",
		eventLine("step.boundary", `{"step_index":-1,"step_kind":"plan"}`):                                "`step_index`",
		eventLine("step.boundary", `{"step_index":1,"step_kind":"nap"}`):                                  "`step_kind`",
		eventLine("child.spawn", `{"child_id":"c","tools_allowed":["a",null]}`):                           "`tools_allowed`",
		eventLine("plan.proposal", `{"plan":{"id":"p"}}`):                                                 "`plan`",
		eventLine("plan.proposal", `{"plan":{"id":"p","steps":[{"id":"s","title":"t","intent":"nap"}]}}`): "`plan`",
		eventLine("run.lifecycle", `{"state":"asleep"}`):                                                  "`state`",
	} {
		e, err := Decode([]byte(line))
		if CodeOf(err) != CodeMalformed || !strings.Contains(err.Error(), names) {
			t.Errorf("%.120s: %v, which does not say %s", line, err, names)
		}
		if !reflect.DeepEqual(e, Event{}) {
			t.Errorf("%.120s: a malformed event must not come through: %+v", line, e)
		}
	}
	if _, err := Decode([]byte(good)); err != nil {
		t.Error(err)
	}
}

// [RW-DRAFT-5]
func TestAnEventMayBeLargerThanADraft(t *testing.T) {
	deep := strings.Repeat(`{"a":`, jsonDepthMax-1) + "{}" + strings.Repeat("}", jsonDepthMax-1)
	for payload, names := range map[string]string{
		`{"text":"x","d":` + deep + `}`:                        "deeper than 64",
		`{"text":"x"` + strings.Repeat(`,"k":0`, 10_000) + `}`: "10000 keys",
	} {
		if _, err := Decode([]byte(eventLine("text.delta", payload))); err != nil {
			t.Error(err)
		}
		_, err := DecodeDraft([]byte(`{"type":"text.delta","payload":` + payload + `}`))
		if CodeOf(err) != CodeMalformed || !strings.Contains(err.Error(), names) {
			t.Errorf("%v, which does not say %s", err, names)
		}
	}
}

func TestAnErrorNamesItsLine(t *testing.T) {
	in := NewJSONLReader(strings.NewReader(eventLine("text.delta", `{"text":"x"}`) + "\n\n{\n" + eventLine("odd", `{}`)))
	if _, err := in.NextEvent(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.NextEvent(); CodeOf(err) != CodeMalformed || !strings.Contains(err.Error(), "KAI-STREAM-PROTO-0001 line 3:") {
		t.Error(err)
	}
	e, err := in.NextEvent()
	if !IsUnknownType(err) || !strings.Contains(err.Error(), "KAI-STREAM-PROTO-0002 line 4:") || e.Seq != 7 || e.Type != "odd" {
		t.Error(e, err)
	}
}
