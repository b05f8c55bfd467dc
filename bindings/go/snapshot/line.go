package snapshot

import (
	"math/bits"
	"unsafe"
)

const (
	// lanes has bit 0 of each 16-bit lane of a word.
	lanes = 0x0001000100010001
	// highest has the highest bit of each lane.
	highest = 0x8000 * lanes
	// slotBits has the bits of match for the slots. The two upper lanes of the last word of a line
	// that matchHalf reads are not fingerprints.
	slotBits = 0x7000_7000_f000_f000
)

// match returns a mask with a bit for each slot of a line that has the fingerprint, which is in
// each lane of wanted; slotOf returns the slot of the lowest bit. Callers on the fast path write
// out this line, because the compiler does not inline it.
func match(line unsafe.Pointer, wanted uint64) uint64 {
	return ^(matchHalf(line, 0, wanted)>>2 | matchHalf(line, 16, wanted)) & slotBits
}

// matchHalf compares the eight lanes from an offset of a line. It clears the highest bit of a lane
// for an equal lane in the second word, and the next bit for one in the first word.
func matchHalf(line unsafe.Pointer, offset uintptr, wanted uint64) uint64 {
	first := nonzeroLanes(load64(line, offset) ^ wanted)
	return first>>1&(highest>>1) | nonzeroLanes(load64(line, offset+8)^wanted)&highest
}

// nonzeroLanes sets the highest bit of each 16-bit lane that is not zero, and clears it in the
// others. The lower bits of a lane have no meaning.
func nonzeroLanes(word uint64) uint64 {
	return word&(fingerprintMask*lanes) + fingerprintMask*lanes | word
}

// slotOf returns the slot for the lowest bit of a mask of match.
func slotOf(mask uint64) uintptr {
	bit := uintptr(bits.TrailingZeros64(mask))
	return bit&3<<2 + bit>>4
}

// recordAt returns the offset in the data section of the record of a slot.
func recordAt(line unsafe.Pointer, slot uintptr) uint64 {
	tail := load64(line, lineShift) // shift, overflow bits and base
	return tail>>16 + uint64(load16(line, lineOffsets+2*slot))<<(tail&63)
}

// overflowOf returns the overflow bits of a line.
func overflowOf(line unsafe.Pointer) byte {
	return *(*byte)(unsafe.Add(line, lineOverflow))
}

// fingerprintAt returns the fingerprint of a slot; 0 for a free one.
func fingerprintAt(line unsafe.Pointer, slot uintptr) uint16 {
	return load16(line, 2*slot)
}

// homeLine returns the home line of a key with this hash.
func (f *file) homeLine(hash uint64) unsafe.Pointer {
	number, _ := bits.Mul64(hash, f.lines)
	return unsafe.Add(f.index, uintptr(number)*lineLen)
}

// line returns a line of the index, by its number.
func (f *file) line(number uint64) unsafe.Pointer {
	return unsafe.Add(f.index, uintptr(number)*lineLen)
}

// probe is the probe sequence of a key: its home line, then the following lines, from the end of
// the partition around to its start.
type probe struct {
	first, line, end uint64
	remaining        uint32
}

func (f *file) probe(hash uint64) probe {
	h := f.header
	line, _ := bits.Mul64(hash, f.lines)
	// Two shifts, because a shift by 64 bits is not the same on all machines.
	first := hash >> 1 >> (63 - h.partitionBits) * uint64(h.linesPerPartition)
	return probe{
		first: first, line: line, end: first + uint64(h.linesPerPartition), remaining: h.maxProbe,
	}
}

// advance moves to the next line. It returns false after the maximum number of lines.
func (p *probe) advance() bool {
	if p.remaining == 0 {
		return false
	}
	p.remaining--
	if p.line++; p.line == p.end {
		p.line = p.first
	}
	return true
}
