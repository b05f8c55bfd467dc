package snapshot

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

// A lookup first tries the fast path: the home line of the key, and a record there whose
// fingerprint matches. The slow path searches every line that can hold the key, decodes every kind
// of record, and names damage.

// outcome is the result of the fast path: a known or unknown type code for a value that was found,
// or one of the constants.
type outcome int

const (
	undecided outcome = -1 // the slow path can decide
	absent    outcome = -2 // the key does not exist
)

// anyType stands for values of all types in find.
const anyType = 0

// find tries the fast path. It returns the stored bytes of the value, whose form is not checked. If
// wanted is a type, the value must have this type.
func (f *file) find(key string, wanted uint64) (string, outcome) {
	var hash, first, last uint64
	p, n := unsafe.Pointer(unsafe.StringData(key)), uintptr(len(key))
	isMiddle := n-9 < 8
	if isMiddle {
		first, last = load64(p, 0), load64(p, n-8)
		hash = f.hashMiddle(first, last, uint64(n))
	} else {
		hash = f.hashOther(key)
	}
	line := f.homeLine(hash)
	pattern := uint64(fingerprintOf(hash)) * lanes
	mask := ^(matchHalf(line, 0, pattern)>>2 | matchHalf(line, 16, pattern)) & slotBits
	if mask == 0 {
		if overflowOf(line)&overflowBit(hash) == 0 {
			return "", absent
		}
		return "", undecided
	}
	at := recordAt(line, slotOf(mask))
	if at >= f.windows {
		return "", undecided
	}
	// At least maxShortRecord bytes of the data follow, so no short record needs further checks.
	record := unsafe.Add(f.data, uintptr(at))
	head := uint64(load16(record, 0))
	tagMask := uint64(0xffff)
	if wanted == anyType {
		tagMask = 0xffff &^ tagTypeMask
	}
	if head&tagMask != uint64(n)<<8|wanted {
		if head&^tagTypeMask&0xff == tagLong {
			return f.findLong(at, key, Type(wanted))
		}
		return "", undecided
	}
	if isMiddle {
		if load64(record, shortHeadLen) != first || load64(record, shortHeadLen+n-8) != last {
			return "", undecided
		}
	} else if unsafe.String((*byte)(unsafe.Add(record, shortHeadLen)), n) != key {
		return "", undecided
	}
	value := (*byte)(unsafe.Add(record, shortHeadLen+n))
	return unsafe.String(value, *(*byte)(unsafe.Add(record, 2))), outcome(head & tagTypeMask)
}

// findLong returns the value of the record at an offset of the data section, whose tag is that of a
// long record with a value that is neither shared nor compressed. The record must have this key,
// and, unless it is anyType, this type.
//
//go:noinline
func (f *file) findLong(at uint64, key string, wanted Type) (string, outcome) {
	data := f.dataBytes
	head := load64(f.data, uintptr(at))
	valueType, keyLen, valueLen := Type(head&tagTypeMask), head>>8&0xffff, head>>24
	keyEnd := at + longHeadLen + keyLen
	if keyLen != uint64(len(key)) || keyEnd > uint64(len(data)) || !valueType.isKnown() ||
		(wanted != anyType && wanted != valueType) {
		return "", undecided
	}
	if string(data[at+longHeadLen:keyEnd]) != key {
		return "", undecided
	}
	begin := alignUp(keyEnd, uint64(typeAlignments[valueType]))
	end := begin + valueLen
	if valueLen > maxValueLen || end > uint64(len(data)) {
		return "", undecided
	}
	return stringOf(data[begin:end]), outcome(valueType)
}

// findSlow searches every line that can hold the key. It returns false for a missing key.
func (f *file) findSlow(key string) (record, bool, error) {
	hash := f.hash(key)
	fingerprint := fingerprintOf(hash)
	probe := f.probe(hash)
	for {
		line := f.line(probe.line)
		for slot := range uintptr(lineSlots) {
			if fingerprintAt(line, slot) != fingerprint {
				continue
			}
			found, err := f.record(recordAt(line, slot))
			if err != nil {
				return record{}, false, err
			}
			if found.key == key {
				return found, true, nil
			}
		}
		if overflowOf(line)&overflowBit(hash) == 0 || !probe.advance() {
			return record{}, false, nil
		}
	}
}

// fastFile returns the file that has the key if the snapshot has it, or nil if only the slow path
// can look the key up: if the snapshot is closed, or lookups return faults as errors.
func (s *Snapshot) fastFile(key string) *file {
	if f := s.fast.Load(); f != nil {
		return f
	}
	return s.fastShard(key)
}

//go:noinline
func (s *Snapshot) fastShard(key string) *file {
	if set := s.set.Load(); set != nil {
		if f := set.fileOf(set.hash(key)); !f.faultErrors {
			return f
		}
	}
	return nil
}

// fileOf returns the file that has the key if the snapshot has it, or ErrClosed.
func (s *Snapshot) fileOf(key string) (*file, error) {
	if f := s.file.Load(); f != nil {
		return f, nil
	}
	if set := s.set.Load(); set != nil {
		return set.fileOf(set.hash(key)), nil
	}
	return nil, ErrClosed
}

// getSlow returns the value of a key by the slow path; the zero Value for a missing key.
//
//go:noinline
func (s *Snapshot) getSlow(key string) (value Value, err error) {
	f, err := s.fileOf(key)
	if err != nil {
		return Value{}, err
	}
	if f.faultErrors {
		value, ok, err := f.getProtected(key, anyType)
		if ok || err != nil {
			return value, err
		}
	}
	err = f.protectLookup(func() error {
		found, ok, err := f.findSlow(key)
		if ok {
			value, err = f.value(&found)
		}
		return err
	})
	runtime.KeepAlive(f)
	return value, err
}

// protectLookup calls a function that looks up a key. It turns faults into errors if the options of
// the snapshot say so.
func (f *file) protectLookup(lookup func() error) error {
	if f.faultErrors {
		return protect(lookup, f.alone[:]...)
	}
	return lookup()
}

// getFast returns the value of a key by the fast path; the zero Value for a missing key. It returns
// false if the slow path must decide.
func (f *file) getFast(key string) (Value, bool) {
	content, found := f.find(key, anyType)
	value, ok := valueOf(content, found)
	runtime.KeepAlive(f)
	return value, ok
}

// getProtected does the same as getFast, for values of a type, and turns faults into errors. It is
// written out because calls of functions would double its time.
func (f *file) getProtected(key string, wanted Type) (value Value, ok bool, err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err, f.alone[:])
	content, found := f.find(key, uint64(wanted))
	value, ok = valueOf(content, found)
	return value, ok, nil
}

// valueOf checks a value that the fast path found. It returns false for damage.
func valueOf(content string, found outcome) (Value, bool) {
	switch {
	case found == outcome(TypeString):
		if !isText(content) {
			return Value{}, false
		}
	case found == absent:
		return Value{}, true
	case found <= 0 || !Type(found).isKnown() || !isAligned(content, Type(found)) ||
		invalidForm(Type(found), content) != "":
		return Value{}, false
	}
	return Value{data: content, valueType: Type(found)}, true
}

// isAligned returns whether the stored bytes of a value begin at a multiple of its alignment.
func isAligned(content string, t Type) bool {
	address := uintptr(unsafe.Pointer(unsafe.StringData(content)))
	return address&(uintptr(typeAlignments[t])-1) == 0
}
