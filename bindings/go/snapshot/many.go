package snapshot

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

// groupLen is the number of keys that GetMany processes at once: enough to hide the latency of
// memory, few enough that the prefetched lines are still in the first-level cache when they are
// used.
const groupLen = 64

// prefetchLen is the number of bytes of a record that are prefetched. If they reach into a second
// cache line, both are prefetched.
const prefetchLen = 24

// GetMany looks up many keys: it sets values[i] to the result of [Snapshot.Get] for keys[i], the
// zero Value for a missing key. It is faster than single lookups, because the memory accesses of 64
// keys overlap. It allocates nothing, except for compressed values.
//
// At the first key for which Get would fail, it returns that error, and leaves the values from that
// key on as they are. A page that cannot be read is an error with [CodeUnreadable], with and
// without [WithFaultErrors]. GetMany panics if values is shorter than keys.
func (s *Snapshot) GetMany(keys []string, values []Value) (err error) {
	values = values[:len(keys)]
	files, err := s.files()
	if err != nil {
		return err
	}
	defer recoverFault(debug.SetPanicOnFault(true), &err, files)
	var group lookupGroup
	for len(keys) > 0 {
		n := min(len(keys), groupLen)
		if err := group.get(files, keys[:n], values[:n]); err != nil {
			return err
		}
		keys, values = keys[n:], values[n:]
	}
	runtime.KeepAlive(files)
	return nil
}

// lookupGroup has the state of up to groupLen lookups.
type lookupGroup struct {
	hashes  [groupLen]uint64
	files   [groupLen]*file
	lines   [groupLen]unsafe.Pointer
	records [groupLen]unsafe.Pointer // the first bytes of a record, or nil without a candidate
}

// get looks up the keys of a group.
func (g *lookupGroup) get(files []*file, keys []string, values []Value) error {
	g.findLines(files, keys)
	g.findRecords(len(keys))
	for i, key := range keys {
		value, ok := g.read(i, key)
		if !ok {
			var err error
			if value, err = g.files[i].getChecked(key); err != nil {
				return err
			}
		}
		values[i] = value
	}
	return nil
}

// findLines hashes the keys and prefetches their home lines.
func (g *lookupGroup) findLines(files []*file, keys []string) {
	first := files[0]
	for i, key := range keys {
		hash := first.hash(key)
		f := first
		if len(files) > 1 {
			f = files[shardOf(hash, len(files))]
		}
		line := f.homeLine(hash)
		g.hashes[i], g.files[i], g.lines[i] = hash, f, line
	}
	prefetch(&g.lines, len(keys))
}

// findRecords finds the first candidate of each key in its home line, and prefetches its record.
func (g *lookupGroup) findRecords(n int) {
	var ends [groupLen]unsafe.Pointer
	for i := range n {
		f, line := g.files[i], g.lines[i]
		pattern := uint64(fingerprintOf(g.hashes[i])) * lanes
		mask := ^(matchHalf(line, 0, pattern)>>2 | matchHalf(line, 16, pattern)) & slotBits
		at := f.windows
		if mask != 0 {
			at = recordAt(line, slotOf(mask))
		}
		g.records[i], ends[i] = nil, line
		if at < f.windows {
			g.records[i] = unsafe.Add(f.data, uintptr(at))
			ends[i] = unsafe.Add(f.data, uintptr(at+prefetchLen))
		}
	}
	prefetch(&g.records, n)
	prefetch(&ends, n)
}

// read reads the value of a key by the fast path. It returns false if the slow path must decide.
func (g *lookupGroup) read(i int, key string) (Value, bool) {
	record := g.records[i]
	if record == nil {
		line := g.lines[i]
		isAbsent := match(line, uint64(fingerprintOf(g.hashes[i]))*lanes) == 0 &&
			overflowOf(line)&overflowBit(g.hashes[i]) == 0
		return Value{}, isAbsent
	}
	n := uintptr(len(key))
	head := uint64(load16(record, 0))
	if head&^tagTypeMask != uint64(n)<<8 {
		return Value{}, false
	}
	stored := unsafe.Add(record, shortHeadLen)
	if n-9 < 8 {
		p := unsafe.Pointer(unsafe.StringData(key))
		if load64(stored, 0) != load64(p, 0) || load64(stored, n-8) != load64(p, n-8) {
			return Value{}, false
		}
	} else if unsafe.String((*byte)(stored), n) != key {
		return Value{}, false
	}
	value := unsafe.String((*byte)(unsafe.Add(stored, n)), *(*byte)(unsafe.Add(record, 2)))
	return valueOf(value, outcome(head&tagTypeMask))
}

// getChecked returns the value of a key by any path; the zero Value for a missing key.
//
//go:noinline
func (f *file) getChecked(key string) (Value, error) {
	if value, ok := f.getFast(key); ok {
		return value, nil
	}
	found, ok, err := f.findSlow(key)
	if err != nil || !ok {
		return Value{}, err
	}
	return f.value(&found)
}
