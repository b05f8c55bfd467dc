package snapshot

import (
	"sync/atomic"
)

// Snapshot is an open snapshot: an immutable map from keys to typed values, read in place.
//
// Any number of goroutines can use a Snapshot. Lookups take no lock and write no shared memory,
// except that lookups of compressed values share decompressors.
//
// # Lifetime of values
//
// Strings, bytes and lists are views of the mapped file; only compressed values are copies. A view
// is valid until [Snapshot.Close], or until the process ends if Close is never called. It must not
// be written to. A read after Close, or a write, ends the process or reads other bytes. To keep
// values for longer, copy them: [Value.Clone], [strings.Clone], [bytes.Clone], [slices.Clone] and
// [CloneStrings].
//
// A snapshot of a watch is closed by the watch; see [Watcher.Current].
type Snapshot struct {
	fast atomic.Pointer[file] // file, or nil if lookups must take the slow path
	file atomic.Pointer[file] // the file, or nil for a set and after Close
	set  atomic.Pointer[set]  // the set, or nil for one file and after Close
	path string

	isWatched bool // whether a watch releases the files
	readers   readers
}

// Open opens a snapshot: a file, or a set of shards by the path of its manifest. It checks headers
// and dictionaries only, so the time does not depend on the size of the files, unless
// [WithResidency] or [WithVerify] makes it read them.
//
// The error has [CodeIO] if a file cannot be opened or mapped or is not a regular file,
// [CodeNotASnapshot] or [CodeUnsupported] for another kind of file or version, and [CodeCorrupt] or
// [CodeUnreadable] for a damaged file.
func Open(path string, options ...Option) (*Snapshot, error) {
	settings := newSettings(options)
	s, err := open(path, settings)
	if err != nil {
		return nil, err
	}
	if err := s.verifyOrClose(settings); err != nil {
		return nil, err
	}
	return s, nil
}

// verifyOrClose verifies the snapshot if the options say so, and closes it if that fails.
func (s *Snapshot) verifyOrClose(settings *settings) error {
	if !settings.verify {
		return nil
	}
	err := s.Verify()
	if err != nil {
		s.close()
	}
	return err
}

func open(path string, settings *settings) (*Snapshot, error) {
	if err := checkMachine(path); err != nil {
		return nil, err
	}
	m, err := settings.openLinked(path, settings.residency)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{path: path}
	isSet, err := m.isManifest(path)
	switch {
	case err != nil:
		unmap(m)
		return nil, err
	case isSet:
		opened, err := openSet(m, path, settings)
		if err == errNoManifest {
			return open(path, settings)
		}
		if err != nil {
			return nil, err
		}
		s.set.Store(opened)
	default:
		opened, err := openFile(m, path)
		if err != nil {
			return nil, err
		}
		opened.faultErrors = settings.faultErrors
		s.setFile(opened)
	}
	return s, nil
}

// FromBytes opens a snapshot from the bytes of a file, such as one that is embedded in the program.
// It copies the bytes, because lists of numbers are read in place and must be aligned.
//
// The errors are those of [Open]. The bytes of a manifest are an error with [CodeUnsupported],
// because the shards are other files.
func FromBytes(bytes []byte) (*Snapshot, error) {
	const path = "(memory)"
	if err := checkMachine(path); err != nil {
		return nil, err
	}
	m := copyOf(bytes)
	if isSet, _ := m.isManifest(path); isSet {
		return nil, unsupported(path, 0, "the bytes of one file",
			"a manifest, which names the files of its shards: open it by its path")
	}
	opened, err := openFile(m, path)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{path: path}
	s.setFile(opened)
	return s, nil
}

func (s *Snapshot) setFile(opened *file) {
	s.file.Store(opened)
	if !opened.faultErrors {
		s.fast.Store(opened)
	}
}

// checkMachine returns an error on machines whose numbers are big-endian: lists of numbers are read
// in place.
func checkMachine(path string) error {
	if isLittleEndian() {
		return nil
	}
	return unsupported(path, 0, "a little-endian machine", "a big-endian one")
}

// Close closes the snapshot. Later calls of its methods return [ErrClosed]. Lookups that are
// running in other goroutines complete or return ErrClosed. Values from the snapshot must not be
// used after Close.
//
// The memory is unmapped, and the space of a removed file freed, by the next garbage collection
// that finds no running lookup. The runtime collects at least every two minutes, unless GOGC=off.
//
// Close does nothing to a snapshot that is closed already or that belongs to a watch. It always
// returns nil.
func (s *Snapshot) Close() error {
	if !s.isWatched {
		s.close()
	}
	return nil
}

func (s *Snapshot) close() {
	s.fast.Store(nil)
	if f := s.file.Swap(nil); f != nil {
		f.release()
	}
	if set := s.set.Swap(nil); set != nil {
		set.release()
	}
}

// release unmaps the files when nothing refers to the snapshot any more. The snapshot stays open.
func (s *Snapshot) release() {
	if f := s.file.Load(); f != nil {
		f.release()
	}
	if set := s.set.Load(); set != nil {
		set.release()
	}
}

// files returns the files in their order, or ErrClosed.
func (s *Snapshot) files() ([]*file, error) {
	if f := s.file.Load(); f != nil {
		return f.alone[:], nil
	}
	if set := s.set.Load(); set != nil {
		return set.files, nil
	}
	return nil, ErrClosed
}

// Path returns the path that the snapshot was opened with, or "(memory)" for one of bytes.
func (s *Snapshot) Path() string {
	return s.path
}

// Len returns the number of entries, or 0 if the snapshot is closed.
func (s *Snapshot) Len() uint64 {
	files, _ := s.files()
	entries := uint64(0)
	for _, f := range files {
		entries += f.header.entries
	}
	return entries
}
