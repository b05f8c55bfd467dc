//! The offset of every field of a snapshot file, its flags and its limits. A test compares them
//! with `docs/formats/snapshot.md`.

/// The first eight bytes of a file. The high bit, the line ends and the Ctrl-Z detect files that
/// were converted as text.
pub const MAGIC: [u8; 8] = *b"\x89NUT\r\n\x1a\n";
/// The first eight bytes of the manifest of a set of shards.
pub const MANIFEST_MAGIC: [u8; 8] = *b"\x89NUS\r\n\x1a\n";
/// Major version. Readers reject any other major version.
pub const VERSION_MAJOR: u16 = 1;
/// Minor version. Readers accept any minor version: a minor change adds only what older readers may
/// ignore.
pub const VERSION_MINOR: u16 = 0;

/// Alignment in bytes of every section and of the data of every partition.
pub const SECTION_ALIGN: u64 = 64;

/// Header: offset of each field in bytes. All integers are little-endian.
pub mod header {
    /// Length of the header in bytes.
    pub const LEN: usize = 512;
    /// `[u8; 8]`: [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// `u16`: [`super::VERSION_MAJOR`].
    pub const VERSION_MAJOR: usize = 8;
    /// `u16`: [`super::VERSION_MINOR`] of the writer.
    pub const VERSION_MINOR: usize = 10;
    /// `u32`: [`LEN`].
    pub const HEADER_LEN: usize = 12;
    /// `u64`: length of the file.
    pub const FILE_LEN: usize = 16;
    /// `u64`: seed of the key hash.
    pub const SEED: usize = 24;
    /// `u64`: number of entries.
    pub const ENTRIES: usize = 32;
    /// `u32`: the index has `2^partition_bits` partitions.
    pub const PARTITION_BITS: usize = 40;
    /// `u32`: number of index lines in each partition.
    pub const LINES_PER_PARTITION: usize = 44;
    /// `u32`: maximum number of lines from the home line of a key to the line that holds it.
    pub const MAX_PROBE: usize = 48;
    /// `u32`: see [`super::flags`].
    pub const FLAGS: usize = 52;
    /// `u64`, `u64`: offset and length of the dictionary section.
    pub const DICTIONARY: usize = 56;
    /// `u64`, `u64`: offset and length of the directory section.
    pub const DIRECTORY: usize = 72;
    /// `u64`, `u64`: offset and length of the index section.
    pub const INDEX: usize = 88;
    /// `u64`, `u64`: offset and length of the data section.
    pub const DATA: usize = 104;
    /// `u64`: XXH3-64 of the dictionary section.
    pub const DICTIONARY_HASH: usize = 120;
    /// `u64`: XXH3-64 of the directory section.
    pub const DIRECTORY_HASH: usize = 128;
    /// `u64`: sum of the lengths of all keys.
    pub const KEY_BYTES: usize = 136;
    /// `u64`: sum of the lengths of all values, decompressed.
    pub const VALUE_BYTES: usize = 144;
    /// `u64`: sum of the lengths of all stored values. A shared value counts once.
    pub const STORED_VALUE_BYTES: usize = 152;
    /// `u64`: number of entries whose record refers to the value of another record.
    pub const SHARED_ENTRIES: usize = 160;
    /// `u64`: number of entries whose value is compressed.
    pub const COMPRESSED_ENTRIES: usize = 168;
    /// `[u64; 16]`: number of entries by type code.
    pub const ENTRIES_BY_TYPE: usize = 176;
    /// `u32`: kind of the index: [`super::line::INDEX_KIND`].
    pub const INDEX_KIND: usize = 304;
    /// `u32`: number of this shard, if the file is a shard of a set; otherwise 0.
    pub const SHARD: usize = 308;
    /// `u32`: number of shards of the set; 0 for a file that is not a shard.
    pub const SHARDS: usize = 312;
    /// `u32`: number of additional sections.
    pub const ADDITIONAL_COUNT: usize = 316;
    /// One entry for each additional section; see [`super::additional`].
    pub const ADDITIONAL: usize = 320;
    /// Zeros up to [`HASH`].
    pub const RESERVED: usize =
        ADDITIONAL + super::additional::MAX_SECTIONS * super::additional::ENTRY_LEN;
    /// `u64`: XXH3-64 of the header before this field.
    pub const HASH: usize = 504;

    const _: () = assert!(DICTIONARY == FLAGS + 4);
    const _: () = assert!(DIRECTORY == DICTIONARY + 16);
    const _: () = assert!(INDEX == DIRECTORY + 16);
    const _: () = assert!(DATA == INDEX + 16);
    const _: () = assert!(DICTIONARY_HASH == DATA + 16);
    const _: () = assert!(INDEX_KIND == ENTRIES_BY_TYPE + 16 * 8);
    const _: () = assert!(ADDITIONAL == ADDITIONAL_COUNT + 4);
    const _: () = assert!(RESERVED == 448);
    const _: () = assert!(LEN == HASH + 8);
    const _: () = assert!((LEN as u64).is_multiple_of(super::SECTION_ALIGN));
}

/// Bits of the header's flags. Readers reject a file with an unknown flag.
pub mod flags {
    /// Some values are compressed with zstd.
    pub const ZSTD: u32 = 1;
    /// Compressed values need the dictionary section.
    pub const DICTIONARY: u32 = 2;
    /// Some records refer to the value of another record.
    pub const SHARED: u32 = 4;
    /// All flags of this version.
    pub const KNOWN: u32 = ZSTD | DICTIONARY | SHARED;
}

/// Additional sections: offset of each field of an entry in the header. They follow the data, and
/// readers ignore those of a kind that they do not know, unless they are required.
pub mod additional {
    /// Length of an entry in bytes.
    pub const ENTRY_LEN: usize = 32;
    /// Maximum number of additional sections.
    pub const MAX_SECTIONS: usize = 4;
    /// `u32`: kind of the section. Kinds are in ascending order; each occurs once.
    pub const KIND: usize = 0;
    /// `u32`: 1 if a reader that does not know the kind must reject the file; otherwise 0.
    pub const REQUIRED: usize = 4;
    /// `u64`: offset of the section.
    pub const OFFSET: usize = 8;
    /// `u64`: length of the section.
    pub const LENGTH: usize = 16;
    /// `u64`: XXH3-64 of the section.
    pub const CHECKSUM: usize = 24;

    /// The kind of the metadata.
    pub const METADATA: u32 = 1;

    const _: () = assert!(ENTRY_LEN == CHECKSUM + 8);
}

/// Metadata: pairs of a name and a value. Offset of each field of a pair, whose name and value
/// follow it.
pub mod metadata {
    /// `u16`: length of the name in bytes.
    pub const NAME_LEN: usize = 0;
    /// `u32`: length of the value in bytes.
    pub const VALUE_LEN: usize = 2;
    /// Length in bytes of both fields.
    pub const HEAD: usize = 6;
}

/// Directory: offset of each field of an entry. One entry for each partition.
pub mod directory {
    /// Length of an entry in bytes.
    pub const ENTRY_LEN: usize = 32;
    /// `u64`: offset of the partition's data in the data section.
    pub const DATA_OFFSET: usize = 0;
    /// `u64`: length of the partition's data.
    pub const DATA_LEN: usize = 8;
    /// `u64`: XXH3-64 of the partition's index lines.
    pub const INDEX_HASH: usize = 16;
    /// `u64`: XXH3-64 of the partition's data.
    pub const DATA_HASH: usize = 24;

    const _: () = assert!(ENTRY_LEN == DATA_HASH + 8);
}

/// Index: offset of each field of a line. A line has 14 slots, one for each record it refers to.
pub mod line {
    /// The kind of an index of such lines, the only kind of this version.
    pub const INDEX_KIND: u32 = 0;
    /// Length of a line in bytes: one cache line.
    pub const LEN: usize = 64;
    /// Number of slots of a line.
    pub const SLOTS: usize = 14;
    /// `[u16; 14]`: fingerprints, which are the low 15 bits of the key hash and [`IN_USE`]; 0 for a
    /// free slot. Slots in use come first.
    pub const FINGERPRINTS: usize = 0;
    /// `[u16; 14]`: offset of each record from the base, in units of `2^shift` bytes.
    pub const OFFSETS: usize = 28;
    /// `u8`: the unit of the offsets is `2^shift` bytes.
    pub const SHIFT: usize = 56;
    /// `u8`: bit `c` is set if a key of overflow class `c` was moved past this full line.
    pub const OVERFLOW: usize = 57;
    /// `u48`: base of the record offsets, as an offset in the data section.
    pub const BASE: usize = 58;

    /// The bit that is set in every fingerprint and distinguishes it from a free slot.
    pub const IN_USE: u16 = 1 << 15;
    /// Lowest bit of the key hash that belongs to the overflow class.
    pub const CLASS_BIT: u32 = 16;
    /// Number of overflow classes.
    pub const CLASSES: u64 = 8;
    /// Lowest of the 16 bits of the key hash that determine the shard.
    pub const SHARD_BIT: u32 = 19;
    /// Maximum shift. A line with 14 records of the maximum length needs 20.
    pub const MAX_SHIFT: u8 = 24;

    const _: () = assert!(OFFSETS == FINGERPRINTS + 2 * SLOTS);
    const _: () = assert!(SHIFT == OFFSETS + 2 * SLOTS);
    const _: () = assert!(OVERFLOW == SHIFT + 1);
    const _: () = assert!(BASE == OVERFLOW + 1);
    const _: () = assert!(LEN == BASE + 6);
}

/// Record: the tag, the lengths of key and value, the key, then the value or a reference to it.
pub mod record {
    /// Bits 0 to 3 of the tag: type code of the value.
    pub const TYPE_MASK: u8 = 0x0f;
    /// Tag bit: the lengths of key and value take seven bytes (`u16`, `u40`) instead of two (`u8`,
    /// `u8`).
    pub const LONG: u8 = 0x10;
    /// Tag bit: a reference follows the key: the offset of the value in the data section (`u48`).
    pub const SHARED: u8 = 0x20;
    /// Tag bit: the value is a zstd frame.
    pub const ZSTD: u8 = 0x40;
    /// Tag bit that must be zero.
    pub const RESERVED: u8 = 0x80;
    /// Length in bytes of a head with short lengths.
    pub const SHORT_HEAD: usize = 3;
    /// Length in bytes of a head with long lengths.
    pub const LONG_HEAD: usize = 8;
    /// Maximum length in bytes of a record with short lengths, and minimum number of zeros at the
    /// end of the data section.
    pub const MAX_SHORT_LEN: usize = SHORT_HEAD + 255 + 255;
    /// Length in bytes of a reference to a shared value.
    pub const REFERENCE_LEN: usize = 6;
}

/// Header of the manifest of a set: offset of each field in bytes. A table with an entry for each
/// shard follows it, then the metadata.
pub mod manifest {
    /// Length of the header in bytes.
    pub const LEN: usize = 96;
    /// `[u8; 8]`: [`super::MANIFEST_MAGIC`].
    pub const MAGIC: usize = 0;
    /// `u16`: [`super::VERSION_MAJOR`].
    pub const VERSION_MAJOR: usize = 8;
    /// `u16`: [`super::VERSION_MINOR`] of the writer.
    pub const VERSION_MINOR: usize = 10;
    /// `u32`: [`LEN`].
    pub const HEADER_LEN: usize = 12;
    /// `u64`: length of the manifest.
    pub const FILE_LEN: usize = 16;
    /// `u64`: seed of the key hash of all shards.
    pub const SEED: usize = 24;
    /// `u64`: number of entries of all shards.
    pub const ENTRIES: usize = 32;
    /// `u32`: number of shards.
    pub const SHARDS: usize = 40;
    /// `u32`: zero. Readers reject a manifest with an unknown flag.
    pub const FLAGS: usize = 44;
    /// `u64`: length of the metadata.
    pub const METADATA_LEN: usize = 48;
    /// `u64`: XXH3-64 of the table.
    pub const TABLE_HASH: usize = 56;
    /// `u64`: XXH3-64 of the metadata.
    pub const METADATA_HASH: usize = 64;
    /// Zeros up to [`HASH`].
    pub const RESERVED: usize = 72;
    /// `u64`: XXH3-64 of the header before this field.
    pub const HASH: usize = 88;

    const _: () = assert!(LEN == HASH + 8);
}

/// Entry of a shard in a manifest: offset of each field.
pub mod manifest_entry {
    /// Length of an entry in bytes.
    pub const LEN: usize = 24;
    /// `u64`: length of the shard's file.
    pub const FILE_LEN: usize = 0;
    /// `u64`: number of entries of the shard.
    pub const ENTRIES: usize = 8;
    /// `u64`: `header_hash` of the shard's file.
    pub const HEADER_HASH: usize = 16;

    const _: () = assert!(LEN == HEADER_HASH + 8);
}

/// Limits of the format.
pub mod limits {
    /// Maximum length of a key in bytes.
    pub const MAX_KEY_LEN: usize = 65_535;
    /// Maximum length of a value in bytes: 4 GiB.
    pub const MAX_VALUE_LEN: u64 = 1 << 32;
    /// Maximum length of a file in bytes: 256 TiB. Offsets in lines and references have 48 bits.
    pub const MAX_FILE_LEN: u64 = 1 << 48;
    /// Maximum value of the header's `max_probe`.
    pub const MAX_PROBE: u32 = 255;
    /// Maximum value of the header's `partition_bits`.
    pub const MAX_PARTITION_BITS: u32 = 28;
    /// Maximum decompressed length of a compressed value in bytes. Longer values are stored
    /// uncompressed.
    pub const MAX_DECOMPRESSED_LEN: u64 = 16 << 20;
    /// Maximum length of a dictionary in bytes.
    pub const MAX_DICTIONARY_LEN: u64 = 1 << 20;
    /// Maximum length of the metadata section in bytes.
    pub const MAX_METADATA_LEN: u64 = 1 << 20;
    /// Maximum length of a name in the metadata in bytes.
    pub const MAX_METADATA_NAME_LEN: usize = 255;
    /// Maximum number of shards of a set.
    pub const MAX_SHARDS: u32 = 1 << 16;
}
