package snapshot

import (
	"fmt"
	"strconv"
	"unsafe"
)

// partitionVerifier verifies one partition. Offsets count from the start of the data section.
type partitionVerifier struct {
	file   *file
	number uint64
	totals totals

	dataEnd uint64 // end of the partition's data
	end     uint64 // end of the last record
}

// verify checks the checksums, the lines and the records of the partition.
func (p *partitionVerifier) verify() error {
	f, h := p.file, p.file.header
	entry := f.directoryEntry(p.number)
	at := h.directory.offset + p.number*directoryEntryLen
	lines := uint64(h.linesPerPartition)
	first := p.number * lines
	index := f.section(h.index)[first*lineLen : (first+lines)*lineLen]
	if computed := checksum(index); computed != entry.indexHash {
		return checksumError(f.path, at+atIndexHash, "the index of a partition", entry.indexHash,
			computed)
	}
	computed := checksum(f.dataBytes[entry.data.offset:entry.data.end()])
	if computed != entry.dataHash {
		return checksumError(f.path, at+atDataHash, "the data of a partition", entry.dataHash,
			computed)
	}
	p.end, p.dataEnd = entry.data.offset, entry.data.end()
	for number := first; number < first+lines; number++ {
		if err := p.verifyLine(number); err != nil {
			return err
		}
	}
	return p.verifyGap(p.dataEnd)
}

// verifyLine checks a line and its entries.
func (p *partitionVerifier) verifyLine(number uint64) error {
	f := p.file
	line := f.line(number)
	at := f.header.index.offset + number*lineLen
	if shift := *(*byte)(unsafe.Add(line, lineShift)); shift > maxShift {
		return corrupt(f.path, at+lineShift, fmt.Sprintf("a shift of at most %d", maxShift),
			strconv.Itoa(int(shift)))
	}
	used := uintptr(0)
	for slot := range uintptr(lineSlots) {
		if fingerprintAt(line, slot) == 0 {
			continue
		}
		if slot != used {
			return corrupt(f.path, at, "slots in use before free slots",
				fmt.Sprintf("slot %d in use after a free one", slot))
		}
		used++
	}
	for slot := used; slot < lineSlots; slot++ {
		if offset := load16(line, lineOffsets+2*slot); offset != 0 {
			return corrupt(f.path, at+lineOffsets+2*uint64(used), "zero offsets of free slots",
				strconv.Itoa(int(offset)))
		}
	}
	for slot := range used {
		if err := p.verifyEntry(number, line, slot); err != nil {
			return err
		}
	}
	return nil
}

// verifyEntry checks the entry of a slot.
func (p *partitionVerifier) verifyEntry(number uint64, line unsafe.Pointer, slot uintptr) error {
	f, begin := p.file, recordAt(line, slot)
	if begin < p.end || begin >= p.dataEnd {
		at := f.header.index.offset + number*lineLen + lineOffsets + 2*uint64(slot)
		return corrupt(f.path, at, fmt.Sprintf("a record from %d to %d", p.end, p.dataEnd),
			strconv.FormatUint(begin, 10))
	}
	if err := p.verifyGap(begin); err != nil {
		return err
	}
	r, err := f.record(begin)
	if err != nil {
		return err
	}
	if r.end > p.dataEnd {
		return f.corruptRecord(begin, fmt.Sprintf("the end of a record by %d", p.dataEnd), r.end)
	}
	p.end = r.end
	if err := p.verifyLookup(number, &r); err != nil {
		return err
	}
	if err := p.verifyValue(&r); err != nil || r.isShared {
		return err
	}
	start := f.header.data.offset
	return f.verifyZeros(start+r.keyEnd, start+r.storedAt)
}

// verifyGap checks that the bytes between the last record and an offset are zero.
func (p *partitionVerifier) verifyGap(to uint64) error {
	start := p.file.header.data.offset
	return p.file.verifyZeros(start+p.end, start+to)
}

// verifyLookup checks that a lookup of the key finds this record.
func (p *partitionVerifier) verifyLookup(number uint64, r *record) error {
	f, h := p.file, p.file.header
	hash := f.hash(r.key)
	if shard := shardOf(hash, int(h.shards)); h.shards > 0 && shard != int(h.shard) {
		return f.corruptRecord(r.begin, fmt.Sprintf("a key of shard %d", h.shard), uint64(shard))
	}
	for probe := f.probe(hash); ; {
		line := f.line(probe.line)
		for slot := range uintptr(lineSlots) {
			if fingerprintAt(line, slot) != fingerprintOf(hash) {
				continue
			}
			begin := recordAt(line, slot)
			found, err := f.record(begin)
			if err != nil {
				return err
			}
			if found.key != r.key {
				continue
			}
			if begin == r.begin && probe.line == number {
				return nil
			}
			return f.corruptRecord(r.begin, "each key once", begin)
		}
		if overflowOf(line)&overflowBit(hash) == 0 || !probe.advance() {
			return f.corruptRecord(r.begin, "a key that lookups find", hash)
		}
	}
}

// verifyValue checks the value of a record, and counts the entry.
func (p *partitionVerifier) verifyValue(r *record) error {
	value, err := p.file.value(r)
	if err != nil {
		return err
	}
	t := &p.totals
	t.entries++
	t.keyBytes += uint64(len(r.key))
	t.valueBytes += uint64(len(value.data))
	if r.isShared {
		t.sharedEntries++
	} else {
		t.storedValueBytes += uint64(len(r.stored))
	}
	if r.isCompressed {
		t.compressedEntries++
	}
	t.entriesByType[r.valueType]++
	return nil
}
