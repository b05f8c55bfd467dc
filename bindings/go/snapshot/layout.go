package snapshot

// The tables of docs/formats/snapshot.md as constants. Offsets and lengths are in bytes.

const (
	magic         = "\x89NUT\r\n\x1a\n"
	manifestMagic = "\x89NUS\r\n\x1a\n"
	versionMajor  = 1
	versionMinor  = 0
	sectionAlign  = 64
)

// Offsets of the fields of the header.
const (
	headerLen             = 512
	atVersionMajor        = 8
	atVersionMinor        = 10
	atHeaderLen           = 12
	atFileLen             = 16
	atSeed                = 24
	atEntries             = 32
	atPartitionBits       = 40
	atLinesPerPartition   = 44
	atMaxProbe            = 48
	atFlags               = 52
	atDictionary          = 56
	atDirectory           = 72
	atIndex               = 88
	atData                = 104
	atDictionaryHash      = 120
	atDirectoryHash       = 128
	atKeyBytes            = 136
	atValueBytes          = 144
	atStoredValueBytes    = 152
	atSharedEntries       = 160
	atCompressedEntries   = 168
	atEntriesByType       = 176
	atIndexKind           = 304
	atShard               = 308
	atShards              = 312
	atAdditionalCount     = 316
	atAdditional          = 320
	atReserved            = 448
	atHeaderHash          = 504
	additionalEntryLen    = 32
	additionalAtRequired  = 4
	additionalAtOffset    = 8
	additionalAtLength    = 16
	additionalAtChecksum  = 24
	maxAdditionalSections = 4
	kindMetadata          = 1
	metadataHeadLen       = 6
)

// Flags of the header.
const (
	flagZstd       = 1
	flagDictionary = 2
	flagShared     = 4
	knownFlags     = flagZstd | flagDictionary | flagShared
)

// Offsets of the fields of a directory entry.
const (
	directoryEntryLen = 32
	atDataOffset      = 0
	atDataLen         = 8
	atIndexHash       = 16
	atDataHash        = 24
)

// Offsets of the fields of a line of the index.
const (
	lineLen      = 64
	lineSlots    = 14
	lineOffsets  = 28
	lineShift    = 56
	lineOverflow = 57
	maxShift     = 24
)

// Parts of a record.
const (
	tagTypeMask     = 15
	tagLong         = 16
	tagShared       = 32
	tagCompressed   = 64
	tagReserved     = 128
	shortHeadLen    = 3
	longHeadLen     = 8
	referenceLen    = 6
	maxShortRecord  = 513
	minDataLen      = 576
	fingerprintMask = 0x7fff
	fingerprintBit  = 0x8000
)

// Offsets of the fields of a manifest and of its entries.
const (
	manifestLen           = 96
	manifestAtShards      = 40
	manifestAtFlags       = 44
	manifestAtMetadataLen = 48
	manifestAtTableHash   = 56
	manifestAtMetaHash    = 64
	manifestAtReserved    = 72
	manifestAtHeaderHash  = 88
	manifestEntryLen      = 24
	shardAtFileLen        = 0
	shardAtEntries        = 8
	shardAtHeaderHash     = 16
)

// Limits of the format.
const (
	maxFileLen         = 1 << 48
	maxValueLen        = 1 << 32
	maxDecompressedLen = 16 << 20
	maxDictionaryLen   = 1 << 20
	maxMetadataLen     = 1 << 20
	maxMetadataNameLen = 255
	maxPartitionBits   = 28
	maxProbeLimit      = 255
	maxShards          = 1 << 16
)

// alignUp returns the first multiple of a power of two at or after an offset.
func alignUp(offset, alignment uint64) uint64 {
	return (offset + alignment - 1) &^ (alignment - 1)
}
