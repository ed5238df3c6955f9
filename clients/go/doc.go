// Package runwire reads and writes agent runs in the koder dialect of the agent stream protocol.
//
// It has no dependencies. Bytes become messages in sse.go and jsonl.go, messages become events in event.go, and
// follow.go and writer.go talk to a gateway. PROTOCOL.md of the project is the norm; the rules it numbers are
// cited in the tests.
package runwire
