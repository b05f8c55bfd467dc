package snapshot

import "sync/atomic"

// readers counts the readers of a snapshot of a watch. The snapshot is unmapped when the watch has
// replaced it and its last reader has finished, unless the program may refer to it otherwise: then
// only the garbage collector finds that it has finished.
type readers struct {
	state    atomic.Int64 // the readers, isReplaced, isKept and isClosing
	isShared atomic.Bool  // whether Current or an event has returned the snapshot
}

const (
	// isReplaced is added to the state when the watch has replaced the snapshot.
	isReplaced = 1 << 62
	// isKept is added then if the snapshot is shared: it stays open, and the collector unmaps it.
	isKept = 1 << 61
	// isClosing is added in place of isKept if the watch is closed: the last reader closes the
	// snapshot, and the collector unmaps it.
	isClosing = 1 << 60
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

// share notes that the program can refer to the snapshot without being a reader.
func (r *readers) share() {
	// Reading does not take the cache line from other processors.
	if !r.isShared.Load() {
		r.isShared.Store(true)
	}
}

// endReader counts a reader that has finished.
func (s *Snapshot) endReader() {
	s.releaseUnread(s.readers.state.Add(-1))
}

// replace prevents further readers, and returns whether the snapshot is kept because it is shared.
// Otherwise it is unmapped when it has no readers. The watch must serve another snapshot before.
func (s *Snapshot) replace() (kept bool) {
	if s.readers.isShared.Load() {
		s.readers.state.Add(isReplaced + isKept)
		return true
	}
	s.releaseUnread(s.readers.state.Add(isReplaced))
	return false
}

// closeUnread prevents further readers, and closes the snapshot when it has no readers. The watch
// must serve another snapshot before.
func (s *Snapshot) closeUnread() {
	if s.readers.isShared.Load() {
		s.releaseUnread(s.readers.state.Add(isReplaced + isClosing))
	} else {
		s.releaseUnread(s.readers.state.Add(isReplaced))
	}
}

// releaseUnread closes the snapshot if its readers have this state: replaced, not kept, and without
// a reader. Only one change leads to that state.
func (s *Snapshot) releaseUnread(state int64) {
	switch state {
	case isReplaced:
		s.closeAndUnmap()
	case isReplaced + isClosing:
		s.close()
	}
}

// closeAndUnmap closes a snapshot that the program can no longer use, and unmaps it at once.
func (s *Snapshot) closeAndUnmap() {
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
