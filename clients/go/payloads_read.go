package runwire

import "encoding/json"

// How the members of each core type become its payload. What they must be is the table of types in PROTOCOL.md.
var payloads = map[string]func(*members) Payload{
	"reasoning.delta": func(in *members) Payload {
		return ReasoningDelta{in.text("text", required), in.id("call_id", optional), in.left()}
	},
	"text.delta": func(in *members) Payload {
		return TextDelta{in.text("text", required), in.id("call_id", optional), in.left()}
	},
	"tool.start": func(in *members) Payload {
		return ToolStart{
			CallID: in.id("call_id", required), Tool: in.text("tool", required),
			SkillID: in.text("skill_id", optional), Input: in.raw("input"), Rest: in.left(),
		}
	},
	"tool.end": func(in *members) Payload {
		return ToolEnd{
			CallID: in.id("call_id", required), OK: in.flag("ok"), Output: in.raw("output"),
			Error: in.failure("error"), DurationMS: in.number("duration_ms"),
			BlobRef: in.text("blob_ref", optional), Rest: in.left(),
		}
	},
	"step.boundary": func(in *members) Payload {
		return StepBoundary{
			StepIndex: in.count("step_index", required),
			StepKind: in.oneOf("step_kind", required, "a kind of step",
				"plan", "tool-roundtrip", "text-only", "fan-out", "fan-in", "done"),
			CheckpointID: in.id("checkpoint_id", optional), Rest: in.left(),
		}
	},
	"child.spawn": func(in *members) Payload {
		return ChildSpawn{
			ChildID: in.id("child_id", required), Prompt: in.text("prompt", optional),
			ToolsAllowed: in.texts("tools_allowed"), Rest: in.left(),
		}
	},
	"plan.proposal": func(in *members) Payload {
		return PlanProposal{Plan: in.plan("plan"), Rest: in.left()}
	},
	"run.lifecycle": func(in *members) Payload {
		state := in.oneOf("state", required, "a run state", "planning", "awaiting_approval", "running", "paused",
			"redirecting", "done", "aborted", "error")
		return RunLifecycle{
			State: State(state), Reason: in.text("reason", optional),
			DroppedCount: in.count("dropped_count", optional), Rest: in.left(),
		}
	},
}

// left is what no field has taken; nil where that is nothing, as in a payload written by hand.
func (m *members) left() Rest {
	if len(m.rest) == 0 {
		return nil
	}
	return m.rest
}

func (m *members) failure(name string) *Failure {
	const must = "an error code, or an object with that `code`"
	text, there := m.rest[name]
	if !there || string(text) == "null" {
		return nil
	}
	delete(m.rest, name)
	var code string
	if json.Unmarshal(text, &code) == nil {
		return &Failure{Code: code, Bare: true}
	}
	in := membersOf(text)
	if in == nil {
		m.refuse(name, must)
		return nil
	}
	failure := &Failure{Code: in.text("code", required)}
	if in.wrong != "" {
		m.refuse(name, must)
	}
	// Any message passes on this wire; only one that is text is of use.
	if said := membersOf(text); said.text("message", optional) != "" && said.wrong == "" {
		failure.Message = in.text("message", optional)
	}
	failure.Rest = in.left()
	return failure
}

func (m *members) plan(name string) (plan Plan) {
	const must = "a plan with `id` and `steps`, each with `id` and `title` and, where given, a known `intent`"
	in := membersOf(m.rest[name])
	var steps []json.RawMessage
	if in == nil || json.Unmarshal(in.raw("steps"), &steps) != nil || steps == nil {
		m.refuse(name, must)
		return plan
	}
	delete(m.rest, name)
	plan = Plan{
		ID: in.id("id", required), RunID: in.id("run_id", optional),
		Steps: []PlanStep{}, EstTotalCostUSD: in.number("est_total_cost_usd"),
	}
	for _, text := range steps {
		step := membersOf(text)
		if step == nil {
			m.refuse(name, must)
			return plan
		}
		plan.Steps = append(plan.Steps, PlanStep{
			ID: step.id("id", required), Title: step.text("title", required),
			Intent: step.oneOf("intent", optional, must,
				"research", "write", "edit", "execute", "verify", "report", "other"),
			EstTools: step.texts("est_tools"), EstCostUSD: step.number("est_cost_usd"), Rest: step.left(),
		})
		in.wrong += step.wrong
	}
	if in.wrong != "" {
		m.refuse(name, must)
	}
	plan.Rest = in.left()
	return plan
}

func contains(values []string, text string) bool {
	for _, value := range values {
		if value == text {
			return true
		}
	}
	return false
}
