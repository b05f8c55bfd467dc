//! The constants of `docs/formats/segments.md`, by the names of that page: names of files, offsets
//! and limits. A test compares them.

/// The name of the index.
pub(crate) const INDEX_NAME: &str = "index";
/// The name of an index that is being created.
pub(crate) const INDEX_NEW: &str = "index.new";
/// The name of the settings file.
pub(crate) const SETTINGS_NAME: &str = "settings";
/// The name of a settings file that is being written.
pub(crate) const SETTINGS_NEW: &str = "settings.new";
/// The name of the list of pins.
pub(crate) const PINS_NAME: &str = "pins";
/// The name of the file whose bytes are fetch locks. The name is part of the format.
pub(crate) const FETCH_LOCKS_NAME: &str = "claims";
/// The name of a list of pins that is being written.
pub(crate) const PINS_NEW: &str = "pins.new";
/// The end of the name of a segment, after its number in 16 hexadecimal digits.
pub(crate) const SEGMENT_ENDING: &str = ".seg";

/// The settings file.
pub(crate) mod settings {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTSETTG";
    pub(crate) const VERSION_NOW: u32 = 1;

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const LIMIT: usize = 16;
    pub(crate) const MIN_FREE: usize = 24;
    pub(crate) const PARTS: usize = 32;
    pub(crate) const SHARED: usize = 40;
    pub(crate) const CHECK: usize = 56;
    pub(crate) const LEN: usize = 64;
}

/// The header of the index.
pub(crate) mod index {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTINDEX";
    pub(crate) const VERSION_NOW: u32 = 2;

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const SLOTS: usize = 12;
    pub(crate) const SETS: usize = 16;
    pub(crate) const GROWN: usize = 24;
    pub(crate) const FAMILY: usize = 32;
    pub(crate) const CHECK: usize = 40;

    // Words that change while the index is in use.
    pub(crate) const RETIRED: usize = 64;
    pub(crate) const DIRTY: usize = 72;
    pub(crate) const NEXT: usize = 80;
    pub(crate) const NEXT_EVICTION_ORDER: usize = 88;
    pub(crate) const LIMIT: usize = 96;
    pub(crate) const MIN_FREE: usize = 104;
    pub(crate) const PARTS: usize = 112;
    pub(crate) const SHARED: usize = 120;
    pub(crate) const SETTINGS_CHECK: usize = 128;
    pub(crate) const EVICTED: usize = 136;
    pub(crate) const MOVED: usize = 144;
    pub(crate) const DISPLACED: usize = 152;
    pub(crate) const FIRST_OWN: usize = 160;

    /// The values of `RETIRED`.
    pub(crate) const IN_USE: u64 = 0;
    pub(crate) const COPYING: u64 = 1;
    pub(crate) const REPLACED: u64 = 2;

    pub(crate) const HEADER_LEN: usize = 4096;
    /// Maximum number of slots: a word has 14 bits for one.
    pub(crate) const MAX_SLOTS: u32 = 1 << 14;
    /// Words of a set that point to parts. One more word has counters.
    pub(crate) const WAYS: usize = 15;
    pub(crate) const SET_LEN: usize = (WAYS + 1) * 8;
    /// Maximum number of sets.
    pub(crate) const MAX_SETS: u64 = 1 << 28;
    /// Maximum number of times that an index is doubled: each time uses one bit of the tags.
    pub(crate) const MAX_GROWN: u32 = 11;
}

/// A row of the table of segments.
pub(crate) mod slot {
    pub(crate) const NUMBER: usize = 0;
    pub(crate) const FILE: usize = 8;
    pub(crate) const CHARGED: usize = 16;
    pub(crate) const STATE: usize = 24;
    pub(crate) const EVICTION_ORDER: usize = 32;
    pub(crate) const CHECK: usize = 40;
    pub(crate) const LEN: usize = 64;

    pub(crate) const FREE: u64 = 0;
    pub(crate) const WRITING: u64 = 1;
    pub(crate) const SEALED: u64 = 2;
    /// Added to the state of a segment in the main queue.
    pub(crate) const MAIN_QUEUE: u64 = 16;
    /// Added to the state of a segment whose parts are not all in the index yet.
    pub(crate) const PARTLY_INDEXED: u64 = 32;
}

/// The fields of a word of the index, in bits.
pub(crate) mod word {
    pub(crate) const OFFSET_BITS: u32 = 28;
    pub(crate) const SLOT_BITS: u32 = 14;
    pub(crate) const TAG_BITS: u32 = 19;
    pub(crate) const AWAY_BITS: u32 = 1;
    pub(crate) const USES_BITS: u32 = 2;

    pub(crate) const SLOT_SHIFT: u32 = OFFSET_BITS;
    pub(crate) const TAG_SHIFT: u32 = SLOT_SHIFT + SLOT_BITS;
    pub(crate) const AWAY_SHIFT: u32 = TAG_SHIFT + TAG_BITS;
    pub(crate) const USES_SHIFT: u32 = AWAY_SHIFT + AWAY_BITS;
}

/// The offset of a record is a multiple of this.
pub(crate) const GRAIN: u64 = 64;

/// The header of a segment.
pub(crate) mod segment {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTSEGMT";
    pub(crate) const VERSION_NOW: u32 = 1;

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const NUMBER: usize = 16;
    pub(crate) const SALT: usize = 24;
    pub(crate) const BOOT: usize = 32;
    pub(crate) const CHECK: usize = 56;
    pub(crate) const HEADER_LEN: usize = 64;
    /// Maximum length of a segment: the greatest offset that a word can hold.
    pub(crate) const MAX_LEN: u64 = super::GRAIN << super::word::OFFSET_BITS;
}

/// The head of a record.
pub(crate) mod record {
    pub(crate) const MAGIC: u32 = 0xD5C8_3A4E;

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const HEAD_LEN: usize = 4;
    pub(crate) const CHECK: usize = 8;
    pub(crate) const NAME: usize = 16;
    pub(crate) const FIRST: usize = 32;
    pub(crate) const EXPIRY: usize = 40;
    pub(crate) const DATA_LEN: usize = 48;
    pub(crate) const PARTS: usize = 56;
    pub(crate) const LABEL_LEN: usize = 60;
    pub(crate) const LABEL: usize = 64;

    /// The length of a part entry, after the label: the end of the part in the data (8 bytes) and
    /// its checksum (8 bytes).
    pub(crate) const PART_LEN: usize = 16;
    pub(crate) const MAX_PARTS: usize = 1 << 16;
    pub(crate) const MAX_LABEL_LEN: usize = 1 << 14;
    pub(crate) const MAX_HEAD_LEN: usize = LABEL + MAX_LABEL_LEN + MAX_PARTS * PART_LEN;
}

/// The list of pins.
pub(crate) mod pins {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTPINS2";
    /// The magic of the first version, whose entries are names without groups.
    pub(crate) const MAGIC_1: &[u8; 8] = b"NUTPINS1";
    pub(crate) const CHECK: usize = 8;
    pub(crate) const NAMES: usize = 16;
    /// The offset of the group in an entry.
    pub(crate) const GROUP: usize = 16;
    pub(crate) const ENTRY_LEN: usize = 32;
    pub(crate) const MAX_PINS: usize = 1 << 20;
}

const _: () = assert!(word::USES_SHIFT + word::USES_BITS == 64);
const _: () = assert!(1 << word::SLOT_BITS == index::MAX_SLOTS);
const _: () = assert!(index::HEADER_LEN.is_multiple_of(slot::LEN) && slot::CHECK + 8 <= slot::LEN);
const _: () = assert!((segment::HEADER_LEN as u64).is_multiple_of(GRAIN));
const _: () = assert!(record::LABEL.is_multiple_of(8) && record::MAX_LABEL_LEN.is_multiple_of(8));
