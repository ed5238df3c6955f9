package runwire

// track is a reader's place in a run's log. Numbers are gapless, so what an event is follows from its number alone,
// but for one question: a number already read is either a duplicate or the log was reset, and its id tells.
//
//	read so far  1 2 3 4 5          cursor 5
//	6            the next
//	8            a gap: 6 and 7 were not sent
//	4, same id   seen, after a reconnect
//	4, other id  reset: this is another log, and what was read of the old one no longer holds
type track struct {
	cursor int64
	ids    map[int64]string
}

type verdict int

const (
	isNext verdict = iota
	isSeen
	isGap
	isReset
)

func newTrack(after int64) *track {
	return &track{cursor: after, ids: map[int64]string{}}
}

func (t *track) judge(e Event) verdict {
	switch {
	case e.Seq == t.cursor+1:
		return isNext
	case e.Seq > t.cursor:
		return isGap
	case t.ids[e.Seq] == e.ID:
		return isSeen
	}
	// An id that is no longer remembered counts as another: reading anew is always right.
	return isReset
}

func (t *track) accept(e Event) {
	t.cursor = e.Seq
	t.ids[e.Seq] = e.ID
	delete(t.ids, e.Seq-idsKept)
}
