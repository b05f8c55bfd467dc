package snapshot

import "time"

// Residency says where the bytes of a file are kept.
type Residency int

const (
	// Mapped maps the file. The system reads pages when they are first used, and shares them with
	// all processes. This is the default.
	Mapped Residency = iota
	// Populated maps the file and reads all of its pages when it is opened.
	Populated
	// HugePages copies the file into memory of this process, on huge pages if the system provides
	// them. It gives the fastest lookups in files much larger than the processor's caches, but uses
	// memory of the size of the file in each process. Later changes to the file have no effect on
	// the copy.
	HugePages
)

// Option is an option of [Open] and [Watch].
type Option func(*settings)

// settings has the values of all options.
type settings struct {
	residency   Residency
	faultErrors bool
	verify      bool
	interval    time.Duration
	retention   time.Duration
	report      func(Event)

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
// Opening, iteration, GetMany and Verify always return the error.
func WithFaultErrors() Option {
	return func(s *settings) { s.faultErrors = true }
}

// WithVerify makes a watch verify each file before it serves the file. See [Snapshot.Verify].
func WithVerify() Option {
	return func(s *settings) { s.verify = true }
}

// WithInterval sets the interval between polls of a watch. The default is 250 ms. With zero,
// only [Watcher.Refresh] polls.
//
// After a failed system call, a file is tried again after 1, 2, 4 and so on up to 64 intervals. A
// damaged file is tried again when it changes.
func WithInterval(interval time.Duration) Option {
	return func(s *settings) { s.interval = interval }
}

// WithRetention sets how long a watch keeps a file mapped at least after it has switched to the
// next one. The default is one minute. Values from the old file stay valid for this time.
func WithRetention(retention time.Duration) Option {
	return func(s *settings) { s.retention = retention }
}

// WithReport sets a function that a watch calls with each [Event], one at a time. It may call all
// methods of the watch. If it panics, the watch stores the message in its status and continues.
func WithReport(report func(Event)) Option {
	return func(s *settings) { s.report = report }
}
