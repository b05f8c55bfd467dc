package snapshot

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Watcher serves the newest snapshot at a path that can be opened and, with [WithVerify], verified.
// A file is replaced by renaming another over it.
//
// Any number of goroutines can use a Watcher.
type Watcher struct {
	current  atomic.Pointer[Snapshot]
	follower *follower
	stop     func()
}

// Event is an event of a watch. Either Snapshot or Err is set.
type Event struct {
	// Snapshot is the snapshot that the watch switched to.
	Snapshot *Snapshot
	// Err is the reason why the newest file cannot be used. The watch keeps serving the snapshot
	// that it has. An error is reported once, not at every poll.
	Err error
}

// WatchStatus is the status of a watch.
type WatchStatus struct {
	// Path is the watched path, absolute.
	Path string
	// Switched is the number of switches to a new file.
	Switched uint64
	// Rejected is the number of events with an error.
	Rejected uint64
	// Err is the error that prevents a switch to the newest file, or nil.
	Err error
	// Panic is the message of the last panic of the function of WithReport, or "".
	Panic string
}

// Watch opens the snapshot at a path and watches the path. See [WithInterval], [WithVerify],
// [WithRetention] and [WithReport].
//
// The errors are those of [Open] for the first file.
func Watch(path string, options ...Option) (*Watcher, error) {
	settings := newSettings(options)
	// A change of the working directory must not change the file.
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, ioError(path, "watch", err)
	}
	return watchWith(path, settings, func() (*Snapshot, error) { return open(path, settings) })
}

// watchWith starts a watch that opens files with a function.
func watchWith(path string, settings *settings, open func() (*Snapshot, error)) (*Watcher, error) {
	w := &Watcher{}
	w.follower = &follower{
		path: path, settings: settings, open: open, current: &w.current, now: time.Now,
	}
	if err := w.follower.start(); err != nil {
		return nil, err
	}
	stopped := make(chan struct{})
	w.stop = sync.OnceFunc(func() { close(stopped) })
	if settings.interval > 0 {
		go w.follower.run(settings.interval, stopped)
	}
	return w, nil
}

// Acquire returns the newest snapshot that could be opened, and a function that the caller must
// call once when it has finished with the snapshot and its values. They are valid until then, also
// after [Watcher.Close], and must not be used afterwards.
//
// A snapshot that the watch has replaced is unmapped when its last reader has finished: at once,
// not by the garbage collector and without [WithRetention]. If [Watcher.Current] or an [Event] has
// returned the snapshot, it is unmapped as described there. Acquire changes a counter that all
// goroutines share: call it once for several lookups, not for each.
//
// After [Watcher.Close] it returns a closed snapshot.
func (w *Watcher) Acquire() (*Snapshot, func()) {
	for {
		// If the watch has replaced the snapshot meanwhile, it serves another one.
		if s := w.current.Load(); s.readers.begin() {
			return s, s.endReader
		}
	}
}

// Current returns the newest snapshot that could be opened. It does not open files: its cost is one
// load from memory. After [Watcher.Close] it returns a closed snapshot.
//
// The snapshot and its values stay valid after the watch has switched to the next file: for the
// time of [WithRetention], one minute by default, and then while the program refers to the
// snapshot. So use the result of Current for one request, and call it again for the next. To keep
// values for longer, copy them, or call [runtime.KeepAlive] with the snapshot after their last use.
//
// When the retention of a replaced snapshot has ended, the watch starts a garbage collection, since
// the collector does not know of mapped files. [Watcher.Acquire] needs none.
func (w *Watcher) Current() *Snapshot {
	for {
		s := w.current.Load()
		s.readers.share()
		// If the watch replaces the snapshot meanwhile, it may not have seen that it is shared.
		if w.current.Load() == s {
			return s
		}
	}
}

// Refresh polls for a new file now, and returns whether the watch switched to one. It also tries a
// file that was rejected before; if that is rejected again, [Watcher.Status] has the error. It
// waits while another goroutine opens or verifies a file. After [Watcher.Close] it returns false.
func (w *Watcher) Refresh() bool {
	return w.follower.poll(true)
}

// Status returns the status. It does not wait while a file is opened.
func (w *Watcher) Status() WatchStatus {
	f := w.follower
	f.statusLock.Lock()
	defer f.statusLock.Unlock()
	return f.status
}

// Close ends the watch, and closes its newest snapshot as [Snapshot.Close] does: at once, or when
// the last reader of [Watcher.Acquire] has finished. Snapshots that the watch has replaced stay
// open, but only while the program refers to them. Close waits for a poll that is running, but not
// for readers. It always returns nil. A watch that is not closed polls until the process ends.
func (w *Watcher) Close() error {
	w.stop()
	w.follower.close()
	return nil
}
