package snapshot

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// section is the place of a section in a file.
type section struct {
	offset, length uint64
}

func (s section) end() uint64 {
	return s.offset + s.length
}

// additionalSection is an entry for an additional section.
type additionalSection struct {
	kind     uint32
	section  section
	checksum uint64
}

// header is the validated header of a file.
type header struct {
	versionMinor      uint16
	fileLen           uint64
	seed              uint64
	entries           uint64
	partitionBits     uint32
	linesPerPartition uint32
	maxProbe          uint32
	flags             uint32

	dictionary, directory, index, data section
	dictionaryHash, directoryHash      uint64

	keyBytes, valueBytes, storedValueBytes uint64
	sharedEntries, compressedEntries       uint64
	entriesByType                          [16]uint64

	shard, shards uint32
	additional    []additionalSection
	hash          uint64
}

// partitions returns the number of partitions.
func (h *header) partitions() uint64 {
	return 1 << h.partitionBits
}

// metadata returns the number and the entry of the metadata section, or false without one.
func (h *header) metadata() (int, additionalSection, bool) {
	for number, section := range h.additional {
		if section.kind == kindMetadata {
			return number, section, true
		}
	}
	return 0, additionalSection{}, false
}

// rawHeader is the header of a file before validation.
type rawHeader struct {
	bytes []byte
	path  string
}

// newRawHeader checks the magic and the length of the first bytes of a file.
func newRawHeader(file []byte, path string) (*rawHeader, error) {
	found := file[:min(len(file), len(magic))]
	if string(found) != magic {
		return nil, &Error{
			Code: CodeNotASnapshot, Path: path,
			Expected: fmt.Sprintf("%q", magic), Found: fmt.Sprintf("%q", found),
		}
	}
	if len(file) < headerLen {
		return nil, tooShort(path, len(file), headerLen)
	}
	return &rawHeader{bytes: file[:headerLen], path: path}, nil
}

func tooShort(path string, found, expected int) *Error {
	return corrupt(path, uint64(found), fmt.Sprintf("a header of %d bytes", expected),
		fmt.Sprintf("the end of the file after %d bytes", found))
}

func (r *rawHeader) u16(offset int) uint16 { return binary.LittleEndian.Uint16(r.bytes[offset:]) }
func (r *rawHeader) u32(offset int) uint32 { return binary.LittleEndian.Uint32(r.bytes[offset:]) }
func (r *rawHeader) u64(offset int) uint64 { return binary.LittleEndian.Uint64(r.bytes[offset:]) }

func (r *rawHeader) section(offset int) section {
	return section{offset: r.u64(offset), length: r.u64(offset + 8)}
}

// validate checks all fields against each other and the length of the file, in the order of the
// format page. It does not read the sections.
func (r *rawHeader) validate(fileLen uint64) (*header, error) {
	if err := r.checkVersion(); err != nil {
		return nil, err
	}
	if err := r.checkKnown(); err != nil {
		return nil, err
	}
	if err := r.require(atHeaderLen, "the header length", headerLen,
		uint64(r.u32(atHeaderLen))); err != nil {
		return nil, err
	}
	if err := r.require(atFileLen, "the file length", r.u64(atFileLen), fileLen); err != nil {
		return nil, err
	}
	if err := r.atMost(atFileLen, "a file length", maxFileLen, fileLen); err != nil {
		return nil, err
	}
	h := r.read()
	for _, check := range []func(*header) error{
		r.checkGeometry, r.checkSections, r.checkAdditionalSections, r.checkCounts, r.checkShard,
	} {
		if err := check(h); err != nil {
			return nil, err
		}
	}
	if h.versionMinor == versionMinor {
		return h, r.checkZeros(atReserved, atHeaderHash)
	}
	return h, nil
}

// read decodes the fields.
func (r *rawHeader) read() *header {
	h := &header{
		versionMinor:      r.u16(atVersionMinor),
		fileLen:           r.u64(atFileLen),
		seed:              r.u64(atSeed),
		entries:           r.u64(atEntries),
		partitionBits:     r.u32(atPartitionBits),
		linesPerPartition: r.u32(atLinesPerPartition),
		maxProbe:          r.u32(atMaxProbe),
		flags:             r.u32(atFlags),
		dictionary:        r.section(atDictionary),
		directory:         r.section(atDirectory),
		index:             r.section(atIndex),
		data:              r.section(atData),
		dictionaryHash:    r.u64(atDictionaryHash),
		directoryHash:     r.u64(atDirectoryHash),
		keyBytes:          r.u64(atKeyBytes),
		valueBytes:        r.u64(atValueBytes),
		storedValueBytes:  r.u64(atStoredValueBytes),
		sharedEntries:     r.u64(atSharedEntries),
		compressedEntries: r.u64(atCompressedEntries),
		shard:             r.u32(atShard),
		shards:            r.u32(atShards),
		hash:              r.u64(atHeaderHash),
	}
	for code := range h.entriesByType {
		h.entriesByType[code] = r.u64(atEntriesByType + 8*code)
	}
	for number := range int(r.u32(atAdditionalCount)) {
		at := atAdditional + number*additionalEntryLen
		h.additional = append(h.additional, additionalSection{
			kind:     r.u32(at),
			section:  r.section(at + additionalAtOffset),
			checksum: r.u64(at + additionalAtChecksum),
		})
	}
	return h
}

func (r *rawHeader) require(offset int, what string, expected, found uint64) error {
	if expected == found {
		return nil
	}
	return r.corrupt(offset, fmt.Sprintf("%s to be %d", what, expected), found)
}

func (r *rawHeader) atMost(offset int, what string, limit, found uint64) error {
	if found <= limit {
		return nil
	}
	return r.corrupt(offset, fmt.Sprintf("%s of at most %d", what, limit), found)
}

func (r *rawHeader) within(offset int, what string, least, limit, found uint64) error {
	if least <= found && found <= limit {
		return nil
	}
	return r.corrupt(offset, fmt.Sprintf("%d to %d %s", least, limit, what), found)
}

func (r *rawHeader) checkZeros(from, to int) error {
	for at := from; at < to; at++ {
		if r.bytes[at] != 0 {
			return r.corrupt(at, "a zero", uint64(r.bytes[at]))
		}
	}
	return nil
}

func (r *rawHeader) corrupt(offset int, expected string, found uint64) error {
	return corrupt(r.path, uint64(offset), expected, strconv.FormatUint(found, 10))
}
