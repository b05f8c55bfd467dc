package snapshot

import "time"

// Residency is where the bytes of a file are kept. A system without mmap, such as Windows, always
// copies the file into memory of the process.
type Residency int

const (
	// Mapped maps the file. The system reads pages when they are first used, and shares them with
	// all processes. This is the default.
	Mapped Residency = iota
	// Populated maps the file and reads all of its pages when it is opened. On systems other than
	// Linux, it only advises the system to read them.
	Populated
	// HugePages copies the file into memory of this process when it is opened, on huge pages if the
	// system provides them. It gives the fastest lookups in files much larger than the processor's
	// caches, but uses memory of the size of the file in each process. Later changes to the file,
	// such as a truncation, have no effect on the copy.
	HugePages
)

// Option is an option of [Open] and [Watch]. Open ignores [WithInterval], [WithRetention] and
// [WithReport].
type Option func(*settings)

// settings has the values of all options.
type settings struct {
	residency   Residency
	faultErrors bool
	verify      bool
	interval    time.Duration
	retention   time.Duration
	report      func(Event)
	hasReport   bool // whether the program has set report

	// openMapping maps a file; tests replace it.
	openMapping func(path string, residency Residency) (mapping, error)
}

func newSettings(options []Option) *settings {
	s := &settings{
		interval: 250 * time.Millisecond, retention: time.Minute, report: func(Event) {},
		openMapping: openMapping,
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// WithResidency sets where the bytes of the file are kept. The default is [Mapped].
func WithResidency(residency Residency) Option {
	return func(s *settings) { s.residency = residency }
}

// WithFaultErrors makes every lookup return an error with [CodeUnreadable] if the file was
// truncated or the device fails to read it. Without this option, such a lookup ends the process, as
// a fault of a mapped file does in any Go program. It makes a lookup slower by 10 ns or more.
// Opening, iteration, GetMany, Metadata and Verify return the error with and without this option.
// It has no effect on reads of a value that a lookup returned: such a fault always ends the
// process.
func WithFaultErrors() Option {
	return func(s *settings) { s.faultErrors = true }
}

// WithVerify makes [Open] verify every byte before it returns, and [Watch] before it serves a file.
// The errors are those of [Snapshot.Verify].
func WithVerify() Option {
	return func(s *settings) { s.verify = true }
}

// WithInterval sets the interval between polls of a watch. The default is 250 ms. With zero or
// less, only [Watcher.Refresh] polls.
//
// After a failed system call or an unreadable page, a file is tried again after 1, 2, 4 and so on
// up to 64 intervals. After another error, such as for a damaged file, it is tried again when the
// file at the path changes. Refresh tries in any case.
func WithInterval(interval time.Duration) Option {
	return func(s *settings) { s.interval = interval }
}

// WithRetention sets the minimum time that a watch keeps a file mapped after it has switched to the
// next one. The default is one minute. Values from the old file stay valid for this time, unless
// the watch is closed.
func WithRetention(retention time.Duration) Option {
	return func(s *settings) { s.retention = retention }
}

// WithReport sets a function that a watch calls with each [Event], one at a time: in the goroutine
// of the watch, or in one that calls [Watcher.Refresh]. It may call all methods of the watch. If it
// panics, the watch stores the message in its status and continues.
func WithReport(report func(Event)) Option {
	return func(s *settings) { s.report, s.hasReport = report, true }
}
