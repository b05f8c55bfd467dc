package snapshot

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// maxSkippedPolls is the maximum number of polls that are skipped before a file that failed is
// tried again.
const maxSkippedPolls = 63

// follower polls for new files, switches to them and reports events.
//
// There are three locks. A goroutine that holds several takes them in this order: pollLock, held
// while a file is found, opened and verified; statusLock and eventLock, held briefly. The function
// for events is called without any of them.
type follower struct {
	path     string
	settings *settings
	open     func() (*Snapshot, error)
	now      func() time.Time
	current  *atomic.Pointer[Snapshot]

	pollLock sync.Mutex
	identity identity
	rejected *rejectedFile
	retired  []retiredSnapshot
	// dropped is whether snapshots were dropped since the last garbage collection of the watch.
	dropped  bool
	isClosed bool

	statusLock sync.Mutex
	status     WatchStatus

	eventLock    sync.Mutex
	events       []Event
	isDelivering bool
}

// rejectedFile is a file that cannot be used.
type rejectedFile struct {
	identity    identity
	err         error
	isTransient bool // whether a retry may succeed: after a failed system call, not after damage
	failures    int
	pollsToSkip int
}

// retiredSnapshot is a snapshot that the watch has replaced but keeps for the time of
// WithRetention.
type retiredSnapshot struct {
	snapshot *Snapshot
	at       time.Time
}

// start opens the first file.
func (f *follower) start() error {
	// Identified before it is opened: if it is replaced in between, the first poll opens the new
	// one.
	found, err := identify(f.path)
	if err != nil {
		return err
	}
	opened, err := f.openChecked()
	if err != nil {
		return err
	}
	f.identity = found
	f.status.Path = f.path
	f.current.Store(opened)
	return nil
}

// openChecked opens the file at the path, and verifies it if the options say so.
func (f *follower) openChecked() (*Snapshot, error) {
	opened, err := f.open()
	if err != nil {
		return nil, err
	}
	if err := opened.verifyOrClose(f.settings); err != nil {
		return nil, err
	}
	opened.isWatched = true
	return opened, nil
}

// run polls until the channel is closed.
func (f *follower) run(interval time.Duration, stopped <-chan struct{}) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-ticker.C:
			f.poll(false)
		}
	}
}

// poll looks for a new file. It tries a rejected one again with back-off, or at once if retryNow is
// set. It returns whether the watch switched.
func (f *follower) poll(retryNow bool) bool {
	isSwitched, dropped := f.pollLocked(retryNow)
	f.deliver()
	if dropped {
		// The collector does not know of mapped files. It may be off, or run every two minutes.
		runtime.GC()
	}
	return isSwitched
}

// pollLocked also returns whether snapshots were dropped that the collector unmaps.
func (f *follower) pollLocked(retryNow bool) (isSwitched, dropped bool) {
	f.pollLock.Lock()
	defer f.pollLock.Unlock()
	defer func() { dropped, f.dropped = f.dropped, false }()
	if f.isClosed {
		return false, false
	}
	f.dropRetired()
	opened, err, isKnown := f.openNewest(retryNow)
	if opened != nil {
		f.retire(f.current.Swap(opened))
		f.setStatus(func(s *WatchStatus) { s.Switched++; s.Err = nil })
		if f.settings.hasReport {
			opened.readers.share()
		}
		f.queue(Event{Snapshot: opened})
		return true, false
	}
	f.setStatus(func(s *WatchStatus) {
		// A missing file is reported once, not at every poll.
		if err != nil && !isKnown && (s.Err == nil || s.Err.Error() != err.Error()) {
			s.Rejected++
			f.queue(Event{Err: err})
		}
		s.Err = err
	})
	return false, false
}

// openNewest opens the file at the path, unless the watch serves it already or it is not to be
// tried again yet. It returns neither a snapshot nor an error if the watch serves the newest file,
// and whether the error was returned before.
func (f *follower) openNewest(retryNow bool) (opened *Snapshot, err error, isKnown bool) {
	found, err := identify(f.path)
	if err != nil {
		return nil, err, false
	}
	if found == f.identity {
		f.rejected = nil
		return nil, nil, false
	}
	before := f.rejected
	if before == nil || before.identity != found {
		before = &rejectedFile{identity: found}
	}
	if before.failures > 0 && !retryNow && (!before.isTransient || before.pollsToSkip > 0) {
		before.pollsToSkip = max(before.pollsToSkip-1, 0)
		return nil, before.err, true
	}
	if opened, err = f.openChecked(); err == nil {
		f.identity, f.rejected = found, nil
		return opened, nil, false
	}
	code := CodeOf(err)
	f.rejected = &rejectedFile{
		identity: found, err: err, failures: before.failures + 1,
		isTransient: code == CodeIO || code == CodeUnreadable,
		pollsToSkip: min(1<<min(before.failures, 16), maxSkippedPolls+1) - 1,
	}
	return nil, err, false
}

// retire unmaps a replaced snapshot when its last reader has finished. One that Current or an event
// has returned is kept for the time of WithRetention; afterwards its files are unmapped when
// nothing refers to it any more.
func (f *follower) retire(replaced *Snapshot) {
	if !replaced.replace() {
		return
	}
	replaced.release()
	f.retired = append(f.retired, retiredSnapshot{snapshot: replaced, at: f.now()})
	f.dropRetired()
}

// dropRetired drops the references to snapshots that were retired long enough ago.
func (f *follower) dropRetired() {
	limit := f.now().Add(-f.settings.retention)
	kept := f.retired[:0]
	for _, r := range f.retired {
		if r.at.After(limit) {
			kept = append(kept, r)
		}
	}
	f.dropped = f.dropped || len(kept) < len(f.retired)
	clear(f.retired[len(kept):])
	f.retired = kept
}

// close ends polling, and closes the newest snapshot when its readers have finished. It waits for a
// running poll.
func (f *follower) close() {
	f.pollLock.Lock()
	defer f.pollLock.Unlock()
	if f.isClosed {
		return
	}
	f.isClosed = true
	// Later callers get a snapshot without files.
	f.current.Swap(&Snapshot{path: f.path, isWatched: true}).closeUnread()
	clear(f.retired)
	f.retired = nil
}

func (f *follower) setStatus(change func(*WatchStatus)) {
	f.statusLock.Lock()
	defer f.statusLock.Unlock()
	change(&f.status)
}

// queue adds an event. It must be called before another poll can begin, so that events are in
// order.
func (f *follower) queue(event Event) {
	f.eventLock.Lock()
	defer f.eventLock.Unlock()
	f.events = append(f.events, event)
}

// deliver reports all queued events, unless a goroutine is doing that already. It may be this one,
// if the function for events calls Refresh.
func (f *follower) deliver() {
	f.eventLock.Lock()
	if f.isDelivering {
		f.eventLock.Unlock()
		return
	}
	f.isDelivering = true
	for len(f.events) > 0 {
		event := f.events[0]
		f.events = f.events[1:]
		f.eventLock.Unlock()
		f.report(event)
		f.eventLock.Lock()
	}
	f.events, f.isDelivering = nil, false
	f.eventLock.Unlock()
}

// report calls the function for events, and stores the message of its panic.
func (f *follower) report(event Event) {
	defer func() {
		if panicked := recover(); panicked != nil {
			f.setStatus(func(s *WatchStatus) { s.Panic = fmt.Sprint(panicked) })
		}
	}()
	f.settings.report(event)
}
