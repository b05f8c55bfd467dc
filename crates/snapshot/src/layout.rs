//! Where every byte of a snapshot lies. Offsets only; `docs/formats/snapshot.md` is the same table
//! in prose, and a test compares the two.

/// The first eight bytes. The high bit, the line ends and the Ctrl-Z catch files that went through
/// a text conversion.
pub const MAGIC: [u8; 8] = *b"\x89NUT\r\n\x1a\n";
/// Readers refuse a greater major version.
pub const VERSION_MAJOR: u16 = 1;
/// Readers accept any minor version: a minor change adds only what old readers may ignore.
pub const VERSION_MINOR: u16 = 0;

/// Every section, and the data of every partition, begins at a multiple of this.
pub const SECTION_ALIGN: u64 = 64;

/// Header: offset of each field. All integers are little-endian.
pub mod header {
    /// Length of the header in bytes.
    pub const LEN: usize = 512;
    /// `[u8; 8]`: [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// `u16`
    pub const VERSION_MAJOR: usize = 8;
    /// `u16`
    pub const VERSION_MINOR: usize = 10;
    /// `u32`: [`LEN`].
    pub const HEADER_LEN: usize = 12;
    /// `u64`: length of the whole file.
    pub const FILE_LEN: usize = 16;
    /// `u64`: seed of the key hash.
    pub const SEED: usize = 24;
    /// `u64`: number of entries.
    pub const ENTRIES: usize = 32;
    /// `u32`: the index has `2^partition_bits` partitions.
    pub const PARTITION_BITS: usize = 40;
    /// `u32`: lines of the index in each partition.
    pub const LINES_PER_PARTITION: usize = 44;
    /// `u32`: how many lines beyond its home line a key may lie.
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
    /// `u64`: sum of the lengths of all values as users see them.
    pub const VALUE_BYTES: usize = 144;
    /// `u64`: sum of the lengths of all values as stored, shared ones counted once.
    pub const STORED_VALUE_BYTES: usize = 152;
    /// `u64`: entries whose value is stored with another entry.
    pub const SHARED_ENTRIES: usize = 160;
    /// `u64`: entries whose value is compressed.
    pub const COMPRESSED_ENTRIES: usize = 168;
    /// `[u64; 16]`: number of entries by type code.
    pub const ENTRIES_BY_TYPE: usize = 176;
    /// Zeros up to the hash.
    pub const RESERVED: usize = 304;
    /// `u64`: XXH3-64 of all the header before this field.
    pub const HASH: usize = 504;

    const _: () = assert!(DICTIONARY == FLAGS + 4);
    const _: () = assert!(DIRECTORY == DICTIONARY + 16);
    const _: () = assert!(INDEX == DIRECTORY + 16);
    const _: () = assert!(DATA == INDEX + 16);
    const _: () = assert!(DICTIONARY_HASH == DATA + 16);
    const _: () = assert!(RESERVED == ENTRIES_BY_TYPE + 16 * 8);
    const _: () = assert!(LEN == HASH + 8);
    const _: () = assert!((LEN as u64).is_multiple_of(super::SECTION_ALIGN));
}

/// Bits of the header's flags. A reader refuses a file with a flag it does not know.
pub mod flags {
    /// Some values are compressed with zstd.
    pub const ZSTD: u32 = 1;
    /// The compressed values need the dictionary section.
    pub const DICTIONARY: u32 = 2;
    /// Some records refer to the value of another record.
    pub const SHARED: u32 = 4;
    /// All flags of this version.
    pub const KNOWN: u32 = ZSTD | DICTIONARY | SHARED;
}

/// Directory: one entry for each partition.
pub mod directory {
    /// Length of an entry in bytes.
    pub const ENTRY_LEN: usize = 32;
    /// `u64`: where the data of the partition begins, from the start of the data section.
    pub const DATA_OFFSET: usize = 0;
    /// `u64`: how many bytes of data the partition has.
    pub const DATA_LEN: usize = 8;
    /// `u64`: XXH3-64 of the partition's lines of the index.
    pub const INDEX_HASH: usize = 16;
    /// `u64`: XXH3-64 of the partition's data.
    pub const DATA_HASH: usize = 24;

    const _: () = assert!(ENTRY_LEN == DATA_HASH + 8);
}

/// Index: lines of 64 bytes, each of which names up to 14 records.
pub mod line {
    /// Length of a line in bytes: one cache line.
    pub const LEN: usize = 64;
    /// Records a line can name.
    pub const SLOTS: usize = 14;
    /// `[u16; 14]`: the low 15 bits of each key's hash, and [`IN_USE`]; 0 in a slot not in use.
    /// Slots in use come first.
    pub const FINGERPRINTS: usize = 0;
    /// `[u16; 14]`: where each record begins, in units of `2^shift` bytes from the base.
    pub const OFFSETS: usize = 28;
    /// `u8`: the unit of the offsets is `2^shift` bytes.
    pub const SHIFT: usize = 56;
    /// `u8`: bit `c` is set when a key of overflow class `c` found this line full and lies in a
    /// later one.
    pub const OVERFLOW: usize = 57;
    /// `u48`: the base, from the start of the data section.
    pub const BASE: usize = 58;

    /// The bit that every fingerprint has.
    pub const IN_USE: u16 = 1 << 15;
    /// A key's overflow class is in the bits of its hash from this one on.
    pub const CLASS_BIT: u32 = 16;
    /// Number of overflow classes.
    pub const CLASSES: u64 = 8;
    /// Greatest shift; a line of the largest records needs 20.
    pub const MAX_SHIFT: u8 = 24;

    const _: () = assert!(OFFSETS == FINGERPRINTS + 2 * SLOTS);
    const _: () = assert!(SHIFT == OFFSETS + 2 * SLOTS);
    const _: () = assert!(OVERFLOW == SHIFT + 1);
    const _: () = assert!(BASE == OVERFLOW + 1);
    const _: () = assert!(LEN == BASE + 6);
}

/// Record: a tag, the lengths of key and value, the key, then the value or where to find it.
pub mod record {
    /// Bits 0 to 3 of the tag: the type code of the value.
    pub const TYPE_MASK: u8 = 0x0f;
    /// Tag bit: lengths take seven bytes (`u16`, `u40`) instead of two (`u8`, `u8`).
    pub const LONG: u8 = 0x10;
    /// Tag bit: six bytes after the key (`u48`) tell where in the data section the value lies.
    pub const SHARED: u8 = 0x20;
    /// Tag bit: the value is a zstd frame.
    pub const ZSTD: u8 = 0x40;
    /// Tag bit that must be zero.
    pub const RESERVED: u8 = 0x80;
    /// Length of the head with short lengths.
    pub const SHORT_HEAD: usize = 3;
    /// Length of the head with long lengths.
    pub const LONG_HEAD: usize = 8;
    /// Greatest length of a record with short lengths. The data section ends with as many zeros.
    pub const SHORT_MOST: usize = SHORT_HEAD + 255 + 255;
    /// Length of a reference to a shared value.
    pub const REFERENCE_LEN: usize = 6;
}

/// Limits of the format.
pub mod limits {
    /// Longest key in bytes.
    pub const KEY_LEN: usize = 65_535;
    /// Longest value in bytes: 4 GiB.
    pub const VALUE_LEN: u64 = 1 << 32;
    /// Greatest offset a line or a reference can hold, plus one: 256 TiB.
    pub const FILE_LEN: u64 = 1 << 48;
    /// Greatest value of the header's `max_probe`.
    pub const MAX_PROBE: u32 = 255;
    /// Greatest value of the header's `partition_bits`.
    pub const PARTITION_BITS: u32 = 28;
    /// Longest compressed value once decompressed; longer values are stored as they are.
    pub const DECOMPRESSED_LEN: u64 = 16 << 20;
    /// Longest dictionary in bytes.
    pub const DICTIONARY_LEN: u64 = 1 << 20;
}
