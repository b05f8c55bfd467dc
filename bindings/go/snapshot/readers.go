package snapshot

import "sync/atomic"

// readers counts the readers of a snapshot of a watch. The snapshot is unmapped when the watch has
// replaced it and its last reader has finished, unless the program may refer to it otherwise: then
// only the garbage collector finds that it has finished.
type readers struct {
	state    atomic.Int64 // the readers, isReplaced and isKept
	isShared atomic.Bool  // whether Current or an event has returned the snapshot
}

const (
	// isReplaced is added to the state when the watch has replaced the snapshot.
	isReplaced = 1 << 62
	// isKept is added then if the snapshot is shared: the collector unmaps it.
	isKept = 1 << 61
)

// begin counts a reader, unless the snapshot was replaced.
func (r *readers) begin() bool {
	for {
		state := r.state.Load()
		if state >= isReplaced {
			return false
		}
		if r.state.CompareAndSwap(state, state+1) {
			return true
		}
	}
}

// end counts a reader that has finished. It returns whether the caller must unmap the snapshot: it
// was replaced, is not kept, and has no reader any more.
func (r *readers) end() bool {
	return r.state.Add(-1) == isReplaced
}

// replace prevents further readers. It returns whether the snapshot is kept, and whether the caller
// must unmap it. It must be called after the watch serves another snapshot.
func (r *readers) replace() (kept, unmap bool) {
	if r.isShared.Load() {
		r.state.Add(isReplaced + isKept)
		return true, false
	}
	return false, r.state.Add(isReplaced) == isReplaced
}

// share notes that the program can refer to the snapshot without being a reader.
func (r *readers) share() {
	// Reading does not take the cache line from other processors.
	if !r.isShared.Load() {
		r.isShared.Store(true)
	}
}

// unmapUnread closes a replaced snapshot that has no readers, and unmaps it at once.
func (s *Snapshot) unmapUnread() {
	s.fast.Store(nil)
	if f := s.file.Swap(nil); f != nil {
		f.unmapNow()
	}
	if set := s.set.Swap(nil); set != nil {
		for _, f := range set.files {
			f.unmapNow()
		}
	}
}
