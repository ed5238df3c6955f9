package runwire

import "encoding/json"

// Payload is one of the eight typed payloads of the core types.
type Payload interface {
	// Type is the name on the wire, as in "text.delta".
	Type() string
	write(*object)
}

// Rest has the members of an object that have no field, or whose value a field could not tell from none.
type Rest = map[string]json.RawMessage

// State is what a run is doing.
type State string

const (
	Planning         State = "planning"
	AwaitingApproval State = "awaiting_approval"
	Running          State = "running"
	Paused           State = "paused"
	Redirecting      State = "redirecting"
	Done             State = "done"
	Aborted          State = "aborted"
	Failed           State = "error"
)

// IsFinal says whether nothing leaves this state.
func (s State) IsFinal() bool { return s == Done || s == Aborted || s == Failed }

// ReasoningDelta is a piece of the model's thinking.
type ReasoningDelta struct {
	Text, CallID string
	Rest         Rest
}

// TextDelta is a piece of the answer, or of a tool's output where it has a CallID.
type TextDelta struct {
	Text, CallID string
	Rest         Rest
}

// ToolStart begins a call; ToolEnd with the same CallID ends it.
type ToolStart struct {
	CallID, Tool, SkillID string
	Input                 json.RawMessage
	Rest                  Rest
}

// ToolEnd says how a call went.
type ToolEnd struct {
	CallID     string
	OK         bool
	Output     json.RawMessage
	Error      *Failure
	DurationMS json.Number
	BlobRef    string
	Rest       Rest
}

// Failure is why a call went wrong. Bare is set where the wire has only the code.
type Failure struct {
	Code, Message string
	Bare          bool
	Rest          Rest
}

// StepBoundary ends a step.
type StepBoundary struct {
	StepIndex              int64
	StepKind, CheckpointID string
	Rest                   Rest
}

// ChildSpawn begins a run below this one.
type ChildSpawn struct {
	ChildID, Prompt string
	ToolsAllowed    []string
	Rest            Rest
}

// PlanProposal is a plan for people to see or to approve.
type PlanProposal struct {
	Plan Plan
	Rest Rest
}

type Plan struct {
	ID, RunID       string
	Steps           []PlanStep
	EstTotalCostUSD json.Number
	Rest            Rest
}

type PlanStep struct {
	ID, Title, Intent string
	EstTools          []string
	EstCostUSD        json.Number
	Rest              Rest
}

// RunLifecycle is a change of state. DroppedCount is what this connection skipped, on the terminal event.
type RunLifecycle struct {
	State        State
	Reason       string
	DroppedCount int64
	Rest         Rest
}

func (ReasoningDelta) Type() string { return "reasoning.delta" }
func (TextDelta) Type() string      { return "text.delta" }
func (ToolStart) Type() string      { return "tool.start" }
func (ToolEnd) Type() string        { return "tool.end" }
func (StepBoundary) Type() string   { return "step.boundary" }
func (ChildSpawn) Type() string     { return "child.spawn" }
func (PlanProposal) Type() string   { return "plan.proposal" }
func (RunLifecycle) Type() string   { return "run.lifecycle" }
