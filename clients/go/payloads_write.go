package runwire

import (
	"encoding/json"
	"sort"
)

func (p ReasoningDelta) write(out *object) { TextDelta(p).write(out) }

func (p TextDelta) write(out *object) {
	out.put("text", p.Text)
	out.optional("call_id", p.CallID)
	out.rest(p.Rest)
}

func (p ToolStart) write(out *object) {
	out.put("call_id", p.CallID)
	out.put("tool", p.Tool)
	out.value("input", p.Input)
	out.optional("skill_id", p.SkillID)
	out.rest(p.Rest)
}

func (p ToolEnd) write(out *object) {
	out.put("call_id", p.CallID)
	out.put("ok", p.OK)
	out.value("output", p.Output)
	if p.Error != nil {
		out.put("error", p.Error.json(out))
	}
	out.number("duration_ms", p.DurationMS)
	out.optional("blob_ref", p.BlobRef)
	out.rest(p.Rest)
}

func (p StepBoundary) write(out *object) {
	out.put("step_index", p.StepIndex)
	out.put("step_kind", p.StepKind)
	out.optional("checkpoint_id", p.CheckpointID)
	out.rest(p.Rest)
}

func (p ChildSpawn) write(out *object) {
	out.put("child_id", p.ChildID)
	out.optional("prompt", p.Prompt)
	if len(p.ToolsAllowed) > 0 {
		out.put("tools_allowed", p.ToolsAllowed)
	}
	out.rest(p.Rest)
}

func (p PlanProposal) write(out *object) {
	out.put("plan", p.Plan.json(out))
	out.rest(p.Rest)
}

func (p RunLifecycle) write(out *object) {
	out.put("state", p.State)
	out.optional("reason", p.Reason)
	if p.DroppedCount > 0 {
		out.put("dropped_count", p.DroppedCount)
	}
	out.rest(p.Rest)
}

func (f *Failure) json(parent *object) json.RawMessage {
	var out object
	if f.Bare {
		out.encode(f.Code)
		return out.text.Bytes()
	}
	out.put("code", f.Code)
	out.optional("message", f.Message)
	out.rest(f.Rest)
	return out.inside(parent)
}

func (p Plan) json(parent *object) json.RawMessage {
	var out object
	out.put("id", p.ID)
	out.optional("run_id", p.RunID)
	steps := make([]json.RawMessage, 0, len(p.Steps))
	for _, step := range p.Steps {
		var one object
		one.put("id", step.ID)
		one.put("title", step.Title)
		one.optional("intent", step.Intent)
		if len(step.EstTools) > 0 {
			one.put("est_tools", step.EstTools)
		}
		one.number("est_cost_usd", step.EstCostUSD)
		one.rest(step.Rest)
		steps = append(steps, one.inside(parent))
	}
	out.put("steps", steps)
	out.number("est_total_cost_usd", p.EstTotalCostUSD)
	out.rest(p.Rest)
	return out.inside(parent)
}

func (o *object) value(name string, text json.RawMessage) {
	if text != nil {
		o.put(name, text)
	}
}

func (o *object) number(name string, number json.Number) {
	if number != "" {
		o.put(name, number)
	}
}

// inside hands an inner object to its parent, with what went wrong in it.
func (o *object) inside(parent *object) json.RawMessage {
	text, err := o.end()
	if err != nil {
		if parent.failure == nil {
			parent.failure = err
		}
		return json.RawMessage("null")
	}
	return text
}

func sortedNames(rest Rest) []string {
	names := make([]string, 0, len(rest))
	for name := range rest {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
