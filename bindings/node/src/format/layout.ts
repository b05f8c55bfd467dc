/** The offsets, lengths and limits of the format, as in `docs/formats/snapshot.md`. */

/** First bytes of a file, and of the manifest of a set. */
export const MAGIC = [0x89, 0x4e, 0x55, 0x54, 0x0d, 0x0a, 0x1a, 0x0a] as const;
export const MANIFEST_MAGIC = [0x89, 0x4e, 0x55, 0x53, 0x0d, 0x0a, 0x1a, 0x0a] as const;
export const VERSION_MAJOR = 1;
export const VERSION_MINOR = 0;

/** Alignment of sections, and of the data of partitions. */
export const SECTION_ALIGN = 64;

export const HEADER_LEN = 512;
/** Offsets of the fields of the header. */
export const HEADER = {
  versionMajor: 8,
  versionMinor: 10,
  headerLen: 12,
  fileLen: 16,
  seed: 24,
  entries: 32,
  partitionBits: 40,
  linesPerPartition: 44,
  maxProbe: 48,
  flags: 52,
  dictionary: 56,
  directory: 72,
  index: 88,
  data: 104,
  dictionaryHash: 120,
  directoryHash: 128,
  keyBytes: 136,
  valueBytes: 144,
  storedValueBytes: 152,
  sharedEntries: 160,
  compressedEntries: 168,
  entriesByType: 176,
  indexKind: 304,
  shard: 308,
  shards: 312,
  additionalCount: 316,
  additional: 320,
  reserved: 448,
  hash: 504,
} as const;

/** Flags of the header. */
export const FLAG_COMPRESSED = 1;
export const FLAG_DICTIONARY = 2;
export const FLAG_SHARED = 4;
export const KNOWN_FLAGS = FLAG_COMPRESSED | FLAG_DICTIONARY | FLAG_SHARED;

/** Length of an entry of an additional section, and offsets of its fields. */
export const ADDITIONAL_LEN = 32;
export const ADDITIONAL = { kind: 0, required: 4, offset: 8, length: 16, checksum: 24 } as const;
export const MAX_ADDITIONAL = 4;
/** The kind of the additional section with the metadata. */
export const KIND_METADATA = 1;

/** Length of the lengths of a pair of the metadata, and the maximum length of a name. */
export const METADATA_HEAD_LEN = 6;
export const MAX_METADATA_NAME = 255;

/** Length of an entry of the directory, and offsets of its fields. */
export const DIRECTORY_ENTRY_LEN = 32;
export const DIRECTORY = { dataOffset: 0, dataLen: 8, indexHash: 16, dataHash: 24 } as const;

/** Length of a line of the index, and offsets of its fields. */
export const LINE_LEN = 64;
export const LINE = { fingerprints: 0, offsets: 28, shift: 56, overflow: 57, base: 58 } as const;
export const SLOTS = 14;
export const MAX_SHIFT = 24;

/** Bits of the tag of a record. */
export const TAG_TYPE = 15;
export const TAG_LONG = 16;
export const TAG_SHARED = 32;
export const TAG_COMPRESSED = 64;
export const TAG_RESERVED = 128;
/** Lengths of the two heads of a record, and of a reference. */
export const SHORT_HEAD_LEN = 3;
export const LONG_HEAD_LEN = 8;
export const REFERENCE_LEN = 6;
/** Maximum length of a short record: as many zeros follow the last record. */
export const MAX_SHORT_RECORD = 513;

export const MANIFEST_LEN = 96;
/** Offsets of the fields of a manifest. */
export const MANIFEST = {
  versionMajor: 8,
  versionMinor: 10,
  headerLen: 12,
  fileLen: 16,
  seed: 24,
  entries: 32,
  shards: 40,
  flags: 44,
  metadataLen: 48,
  tableHash: 56,
  metadataHash: 64,
  reserved: 72,
  hash: 88,
} as const;
/** Length of an entry of a manifest, and offsets of its fields. */
export const SHARD_ENTRY_LEN = 24;
export const SHARD_ENTRY = { fileLen: 0, entries: 8, headerHash: 16 } as const;

export const MAX_KEY_LEN = 65_535;
export const MAX_VALUE_LEN = 2 ** 32;
export const MAX_FILE_LEN = 2 ** 48;
export const MAX_DECOMPRESSED_LEN = 2 ** 24;
export const MAX_DICTIONARY_LEN = 2 ** 20;
export const MAX_METADATA_LEN = 2 ** 20;
export const MAX_SHARDS = 65_536;
export const MAX_PARTITION_BITS = 28;
export const MAX_PROBE = 255;

/** Returns the first multiple of `alignment` at or after an offset. */
export function alignUp(offset: number, alignment: number): number {
  return Math.ceil(offset / alignment) * alignment;
}
