package snapshot

import (
	"fmt"
	"math"
)

// checkVersion checks the version and the checksum of the header.
func (r *rawHeader) checkVersion() error {
	if major := r.u16(atVersionMajor); major != versionMajor {
		return unsupported(r.path, atVersionMajor, fmt.Sprintf("format version %d", versionMajor),
			fmt.Sprintf("version %d.%d", major, r.u16(atVersionMinor)))
	}
	stored, computed := r.u64(atHeaderHash), checksum(r.bytes[:atHeaderHash])
	if stored != computed {
		return checksumError(r.path, atHeaderHash, "the header", stored, computed)
	}
	return nil
}

// checkKnown rejects what a later version adds and this reader does not know.
func (r *rawHeader) checkKnown() error {
	if unknown := r.u32(atFlags) &^ knownFlags; unknown != 0 {
		return unsupported(r.path, atFlags, "only flags that this version knows",
			fmt.Sprintf("flags %#x", unknown))
	}
	if kind := r.u32(atIndexKind); kind != 0 {
		return unsupported(r.path, atIndexKind, "an index of kind 0 (lines)",
			fmt.Sprintf("kind %d", kind))
	}
	for code := int(lastType) + 1; code < 16; code++ {
		if at := atEntriesByType + 8*code; r.u64(at) != 0 {
			return unsupported(r.path, uint64(at), fmt.Sprintf("types 1 to %d", lastType),
				fmt.Sprintf("type %d", code))
		}
	}
	count := r.u32(atAdditionalCount)
	if err := r.atMost(atAdditionalCount, "additional sections", maxAdditionalSections,
		uint64(count)); err != nil {
		return err
	}
	for number := range int(count) {
		at := atAdditional + number*additionalEntryLen
		required, kind := r.u32(at+additionalAtRequired), r.u32(at)
		if required > 1 {
			return r.corrupt(at+additionalAtRequired, "0 or 1 for required", uint64(required))
		}
		if required == 1 && kind != kindMetadata {
			return unsupported(r.path, uint64(at), "a required section of kind 1 (metadata)",
				fmt.Sprintf("kind %d", kind))
		}
	}
	return nil
}

// checkGeometry checks the shape of the index.
func (r *rawHeader) checkGeometry(h *header) error {
	if err := r.atMost(atPartitionBits, "partition bits", maxPartitionBits,
		uint64(h.partitionBits)); err != nil {
		return err
	}
	if h.linesPerPartition == 0 {
		return r.corrupt(atLinesPerPartition, "at least one line in each partition", 0)
	}
	limit := min(maxProbeLimit, uint64(h.linesPerPartition)-1)
	return r.atMost(atMaxProbe, "a probe length", limit, uint64(h.maxProbe))
}

// checkSections checks that the sections follow the header in order, and their lengths.
func (r *rawHeader) checkSections(h *header) error {
	dictionary := struct{ least, limit uint64 }{}
	if h.flags&flagDictionary != 0 {
		dictionary.least, dictionary.limit = 1, maxDictionaryLen
	}
	directory := directoryEntryLen * h.partitions()
	// At most 2^28 * 2^32 * 2^6: computed in two steps, because it can exceed 64 bits.
	lines := h.partitions() * uint64(h.linesPerPartition)
	index := uint64(math.MaxUint64)
	if lines <= maxFileLen/lineLen {
		index = lines * lineLen
	}
	expected := uint64(headerLen)
	for _, s := range []struct {
		at           int
		what         string
		section      section
		least, limit uint64
	}{
		{atDictionary, "dictionary", h.dictionary, dictionary.least, dictionary.limit},
		{atDirectory, "directory", h.directory, directory, directory},
		{atIndex, "index", h.index, index, index},
		{atData, "data", h.data, minDataLen, maxFileLen},
	} {
		if err := r.require(s.at, "the offset of the "+s.what, expected,
			s.section.offset); err != nil {
			return err
		}
		room := uint64(0)
		if s.section.offset <= h.fileLen {
			room = h.fileLen - s.section.offset
		}
		if err := r.atMost(s.at+8, "a section within the file", room,
			s.section.length); err != nil {
			return err
		}
		if err := r.within(s.at+8, "bytes of "+s.what, s.least, s.limit,
			s.section.length); err != nil {
			return err
		}
		expected = alignUp(s.section.end(), sectionAlign)
	}
	length := h.data.length
	if length%sectionAlign != 0 || len(h.additional) == 0 && h.data.end() != h.fileLen {
		return r.corrupt(atData+8, fmt.Sprintf("a multiple of %d that ends with the file",
			sectionAlign), length)
	}
	return nil
}

// checkAdditionalSections checks that the additional sections follow the data, in the order of
// their kinds, up to the end of the file.
func (r *rawHeader) checkAdditionalSections(h *header) error {
	end, kind := h.data.end(), uint32(0)
	for number, s := range h.additional {
		at := atAdditional + number*additionalEntryLen
		if s.kind <= kind {
			return r.corrupt(at, fmt.Sprintf("a kind above %d", kind), uint64(s.kind))
		}
		offset := alignUp(end, sectionAlign)
		if err := r.require(at+additionalAtOffset, "the offset of the section", offset,
			s.section.offset); err != nil {
			return err
		}
		room := uint64(0)
		if offset <= h.fileLen {
			room = h.fileLen - offset
		}
		if err := r.atMost(at+additionalAtLength, "a section within the file", room,
			s.section.length); err != nil {
			return err
		}
		if s.kind == kindMetadata {
			if err := r.within(at+additionalAtLength, "bytes of metadata", 1, maxMetadataLen,
				s.section.length); err != nil {
				return err
			}
		}
		end, kind = s.section.end(), s.kind
		if number == len(h.additional)-1 && end != h.fileLen {
			return r.corrupt(at+additionalAtLength, fmt.Sprintf("%d bytes, to the end of the file",
				room), s.section.length)
		}
	}
	return r.checkZeros(atAdditional+len(h.additional)*additionalEntryLen, atReserved)
}

// checkCounts checks the counts of entries against each other, the index and the flags.
func (r *rawHeader) checkCounts(h *header) error {
	all, known := uint64(0), uint64(0)
	for code, count := range h.entriesByType {
		if all += count; all < count {
			all = math.MaxUint64
			break
		}
		if Type(code).isKnown() {
			known += count
		}
	}
	if err := r.require(atEntriesByType, "the entries of all types", h.entries, all); err != nil {
		return err
	}
	if err := r.require(atEntriesByType, "the entries of known types", h.entries,
		known); err != nil {
		return err
	}
	slots := h.index.length / lineLen * lineSlots
	if err := r.atMost(atEntries, "entries that the index has slots for", slots,
		h.entries); err != nil {
		return err
	}
	for _, c := range []struct {
		at    int
		what  string
		flag  uint32
		count uint64
	}{
		{atSharedEntries, "shared entries", flagShared, h.sharedEntries},
		{atCompressedEntries, "compressed entries", flagZstd, h.compressedEntries},
	} {
		least, limit := uint64(0), uint64(0)
		if h.flags&c.flag != 0 {
			least, limit = 1, h.entries
		}
		if err := r.within(c.at, c.what, least, limit, c.count); err != nil {
			return err
		}
	}
	return nil
}

// checkShard checks the number of shards, and that the number of the shard is below it.
func (r *rawHeader) checkShard(h *header) error {
	if err := r.atMost(atShards, "shards", maxShards, uint64(h.shards)); err != nil {
		return err
	}
	limit := uint64(0)
	if h.shards > 0 {
		limit = uint64(h.shards) - 1
	}
	return r.atMost(atShard, "a number of a shard", limit, uint64(h.shard))
}
