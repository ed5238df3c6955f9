package runwire

import "time"

// Every buffer, wait and retry has a limit, and each limit has a name here.
const (
	// One SSE block or one line of JSON.
	frameBytesMax = 64 << 20
	// The payload of a draft: levels of nesting, and keys of all its objects together.
	jsonDepthMax = 64
	jsonKeysMax  = 10_000
	// Levels of an event that is read: far more than a server makes of what it was sent.
	readDepthMax = 256
	// The largest number that every reader holds exactly.
	countMax = 1<<53 - 1

	// Waits between attempts: the first is up to this long, each further one up to twice the one before.
	backoffFirst = 250 * time.Millisecond
	backoffMax   = 10 * time.Second
	// A server that asks for a longer wait is more likely mistaken.
	retryAfterMax = 5 * time.Minute
	// A connection this silent is taken for dead: two keep-alives and a half were missed.
	silenceMax = 37_500 * time.Millisecond
	// A plain request that takes longer counts as lost.
	answerMax = 30 * time.Second
	// The lease of a run that was created without one.
	leaseDefault = 30 * time.Second
	// Of one producer, in the same millisecond.
	livesMax = 100
	// What is read of an answer to a plain request.
	answerBytesMax = 4 << 20
	// Ids remembered to tell a duplicate from a log that was reset.
	idsKept = 1000
)
