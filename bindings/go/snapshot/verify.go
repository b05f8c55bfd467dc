package snapshot

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// Verify checks every byte of the snapshot, in GOMAXPROCS goroutines: checksums, offsets, values,
// and that a lookup finds every entry. Opening checks headers and dictionaries only, and lookups
// check the bytes that they read. After Verify, no lookup finds damage unless the file changes.
//
// The error has [CodeCorrupt] for the first contradiction to the format, [CodeUnreadable] if a page
// could not be read, or is [ErrClosed].
func (s *Snapshot) Verify() error {
	if set := s.set.Load(); set != nil {
		if _, err := set.metadata(); err != nil {
			return err
		}
	}
	files, err := s.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := f.verify(); err != nil {
			return err
		}
	}
	runtime.KeepAlive(files)
	return nil
}

// verify checks every byte of a file, in the order of the format page.
func (f *file) verify() error {
	err := protect(func() error {
		if err := f.verifySections(); err != nil {
			return err
		}
		return f.verifyDirectory()
	}, f)
	if err != nil {
		return err
	}
	sum, err := f.verifyPartitions()
	if err != nil {
		return err
	}
	return f.verifyTotals(sum)
}

// verifySections checks the bytes between sections, the checksums of the dictionary and of the
// additional sections, and the metadata.
func (f *file) verifySections() error {
	h := f.header
	for _, gap := range [][2]uint64{
		{headerLen, h.dictionary.offset}, {h.dictionary.end(), h.directory.offset},
		{h.directory.end(), h.index.offset}, {h.index.end(), h.data.offset},
	} {
		if err := f.verifyZeros(gap[0], gap[1]); err != nil {
			return err
		}
	}
	if computed := checksum(f.section(h.dictionary)); computed != h.dictionaryHash {
		return checksumError(f.path, atDictionaryHash, "the dictionary", h.dictionaryHash, computed)
	}
	end := h.data.end()
	for number, entry := range h.additional {
		if err := f.verifyZeros(end, entry.section.offset); err != nil {
			return err
		}
		if err := f.checkAdditionalHash(number, entry); err != nil {
			return err
		}
		end = entry.section.end()
	}
	if _, err := f.metadata(); err != nil {
		return err
	}
	if computed := checksum(f.section(h.directory)); computed != h.directoryHash {
		return checksumError(f.path, atDirectoryHash, "the directory", h.directoryHash, computed)
	}
	return nil
}

// verifyZeros checks that the bytes of the file between two offsets are zero.
func (f *file) verifyZeros(from, to uint64) error {
	if from >= to {
		return nil
	}
	bytes := f.mapping.bytes[from:to]
	if at := slices.IndexFunc(bytes, func(b byte) bool { return b != 0 }); at >= 0 {
		return corrupt(f.path, from+uint64(at), "a zero", strconv.Itoa(int(bytes[at])))
	}
	return nil
}

// directoryEntry describes a partition.
type directoryEntry struct {
	data                section // the offset counts from the start of the data section
	indexHash, dataHash uint64
}

func (f *file) directoryEntry(partition uint64) directoryEntry {
	entry := f.section(f.header.directory)[partition*directoryEntryLen:]
	field := func(at int) uint64 { return binary.LittleEndian.Uint64(entry[at:]) }
	return directoryEntry{
		data:      section{offset: field(atDataOffset), length: field(atDataLen)},
		indexHash: field(atIndexHash), dataHash: field(atDataHash),
	}
}

// verifyDirectory checks that the data of the partitions is in order, with gaps of zeros for
// alignment only.
func (f *file) verifyDirectory() error {
	h := f.header
	expected := uint64(0)
	for partition := range h.partitions() {
		data := f.directoryEntry(partition).data
		at := h.directory.offset + partition*directoryEntryLen
		if data.offset != expected {
			return corrupt(f.path, at, fmt.Sprintf("the data of partition %d at %d", partition,
				expected), strconv.FormatUint(data.offset, 10))
		}
		room := h.data.length - min(data.offset, h.data.length)
		if data.length > room {
			return corrupt(f.path, at+atDataLen, fmt.Sprintf("at most %d bytes of data", room),
				strconv.FormatUint(data.length, 10))
		}
		expected = alignUp(data.end(), sectionAlign)
		if err := f.verifyZeros(h.data.offset+data.end(),
			min(h.data.offset+expected, h.data.end())); err != nil {
			return err
		}
	}
	if length := alignUp(expected+maxShortRecord, sectionAlign); length != h.data.length {
		return corrupt(f.path, atData+8, fmt.Sprintf("%d bytes of data", h.data.length),
			strconv.FormatUint(length, 10))
	}
	return f.verifyZeros(h.data.offset+expected, h.data.end())
}

// verifyPartitions checks all partitions. It returns their counts, or the error of the first
// partition that has one.
func (f *file) verifyPartitions() (totals, error) {
	partitions := f.header.partitions()
	workers := int(min(uint64(runtime.GOMAXPROCS(0)), partitions))
	// The lowest partition with an error so far. Partitions above it need not be checked.
	var next, failed atomic.Uint64
	failed.Store(partitions)
	sums, errs := make([]totals, workers), make(map[uint64]error)
	var lock sync.Mutex
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for {
				number := next.Add(1) - 1
				if number >= failed.Load() {
					return
				}
				p := partitionVerifier{file: f, number: number}
				if err := protect(p.verify, f); err != nil {
					lock.Lock()
					errs[number] = err
					failed.Store(min(failed.Load(), number))
					lock.Unlock()
					return
				}
				sums[worker].add(p.totals)
			}
		})
	}
	group.Wait()
	if number := failed.Load(); number < partitions {
		return totals{}, errs[number]
	}
	sum := totals{}
	for _, part := range sums {
		sum.add(part)
	}
	return sum, nil
}

// totals has the counts of the header, computed from the records.
type totals struct {
	entries, keyBytes, valueBytes, storedValueBytes uint64
	sharedEntries, compressedEntries                uint64
	entriesByType                                   [16]uint64
}

func (t *totals) add(other totals) {
	t.entries += other.entries
	t.keyBytes += other.keyBytes
	t.valueBytes += other.valueBytes
	t.storedValueBytes += other.storedValueBytes
	t.sharedEntries += other.sharedEntries
	t.compressedEntries += other.compressedEntries
	for code, count := range other.entriesByType {
		t.entriesByType[code] += count
	}
}

// verifyTotals compares the counts of all partitions with the header.
func (f *file) verifyTotals(sum totals) error {
	h := f.header
	for _, c := range []struct {
		at            uint64
		what          string
		stored, found uint64
	}{
		{atEntries, "entries", h.entries, sum.entries},
		{atKeyBytes, "bytes of keys", h.keyBytes, sum.keyBytes},
		{atValueBytes, "bytes of values", h.valueBytes, sum.valueBytes},
		{atStoredValueBytes, "bytes of stored values", h.storedValueBytes, sum.storedValueBytes},
		{atSharedEntries, "shared entries", h.sharedEntries, sum.sharedEntries},
		{atCompressedEntries, "compressed entries", h.compressedEntries, sum.compressedEntries},
	} {
		if c.stored != c.found {
			return corrupt(f.path, c.at, fmt.Sprintf("%d %s", c.stored, c.what),
				strconv.FormatUint(c.found, 10))
		}
	}
	if h.entriesByType != sum.entriesByType {
		return corrupt(f.path, atEntriesByType, fmt.Sprintf("entries by type %v", h.entriesByType),
			fmt.Sprint(sum.entriesByType))
	}
	return nil
}
