package snapshot

import (
	"iter"
	"runtime"
	"strings"
)

// Entry is an entry of a snapshot. Key and value are views of the file: see [Snapshot] for how long
// they are valid.
type Entry struct {
	Key   string
	Value Value
}

// Clone returns a copy of the entry, which is independent of the file.
func (e Entry) Clone() Entry {
	return Entry{Key: strings.Clone(e.Key), Value: e.Value.Clone()}
}

// All returns an iterator over all entries in the order of the file. The order follows from the
// hashes of the keys: it is unrelated to the order of the keys, and the same each time.
//
// Iteration checks each record completely, but no checksums: see [Snapshot.Verify]. After an error
// with [CodeCorrupt], which only a damaged file causes, it continues with the next entry. After
// [ErrClosed] or an error with [CodeUnreadable] it ends.
func (s *Snapshot) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		files, err := s.files()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, f := range files {
			if !s.yieldFile(f, yield) {
				return
			}
		}
	}
}

// yieldFile yields the entries of a file. It returns whether to continue.
func (s *Snapshot) yieldFile(f *file, yield func(Entry, error) bool) bool {
	defer runtime.KeepAlive(f)
	var line decodedLine
	for number := range f.lines {
		// The loop body runs without the protection against faults, which is for this package only.
		if err := protect(func() error { line.decode(f, number); return nil }, f); err != nil {
			yield(Entry{}, err)
			return false
		}
		for i := range line.used {
			if !yield(line.entries[i], line.errors[i]) {
				return false
			}
		}
		if line.used > 0 && s.isClosed() {
			yield(Entry{}, ErrClosed)
			return false
		}
	}
	return true
}

// isClosed returns whether Close was called.
func (s *Snapshot) isClosed() bool {
	return s.file.Load() == nil && s.set.Load() == nil
}

// decodedLine has the entries of a line of the index, or an error in the place of an entry.
type decodedLine struct {
	entries [lineSlots]Entry
	errors  [lineSlots]error
	used    int
}

// decode reads a line and its records.
func (d *decodedLine) decode(f *file, number uint64) {
	line := f.line(number)
	d.used = 0
	for slot := range uintptr(lineSlots) {
		if fingerprintAt(line, slot) == 0 {
			continue
		}
		entry, err := f.entry(recordAt(line, slot))
		d.entries[d.used], d.errors[d.used] = entry, err
		d.used++
	}
}

// entry decodes the entry whose record begins at an offset of the data section.
func (f *file) entry(at uint64) (Entry, error) {
	record, err := f.record(at)
	if err != nil {
		return Entry{}, err
	}
	value, err := f.value(&record)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Key: record.key, Value: value}, nil
}
