//! Where things lie in the files of a folder: `docs/formats/segments.md` as constants. Offsets
//! only.

/// The name of the index.
pub(crate) const INDEX_NAME: &str = "index";
/// The name of an index that is being made.
pub(crate) const INDEX_NEW: &str = "index.new";
/// The name of the settings.
pub(crate) const SETTINGS_NAME: &str = "settings";
/// The name of settings that are being written.
pub(crate) const SETTINGS_NEW: &str = "settings.new";
/// The name of the list of what is pinned.
pub(crate) const PINS_NAME: &str = "pins";
/// The name of the file whose bytes are locked for claims.
pub(crate) const CLAIMS_NAME: &str = "claims";
/// The name of a list of pins that is being made.
pub(crate) const PINS_NEW: &str = "pins.new";
/// What the name of a segment ends with, after 16 hexadecimal digits of its number.
pub(crate) const SEGMENT_ENDING: &str = ".seg";

/// The file of settings.
pub(crate) mod settings {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTSETTG";
    pub(crate) const VERSION_NOW: u32 = 1;

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const LIMIT: usize = 16;
    pub(crate) const LEAST_FREE: usize = 24;
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

    // Words that change while the file is in use.
    pub(crate) const RETIRED: usize = 64;
    pub(crate) const DIRTY: usize = 72;
    pub(crate) const NEXT: usize = 80;
    pub(crate) const TURN: usize = 88;
    pub(crate) const LIMIT: usize = 96;
    pub(crate) const LEAST_FREE: usize = 104;
    pub(crate) const PARTS: usize = 112;
    pub(crate) const SHARED: usize = 120;
    pub(crate) const SETTINGS_CHECK: usize = 128;
    pub(crate) const EVICTED: usize = 136;
    pub(crate) const MOVED: usize = 144;
    pub(crate) const DISPLACED: usize = 152;
    pub(crate) const FIRST_OWN: usize = 160;

    /// What `RETIRED` has.
    pub(crate) const IN_USE: u64 = 0;
    pub(crate) const COPYING: u64 = 1;
    pub(crate) const REPLACED: u64 = 2;

    pub(crate) const HEADER_LEN: usize = 4096;
    /// Slots a table may have: 14 bits of a word.
    pub(crate) const SLOTS_MOST: u32 = 1 << 14;
    /// Words of a set that lead to parts. One more counts those that lie in another set.
    pub(crate) const WAYS: usize = 15;
    pub(crate) const SET_LEN: usize = (WAYS + 1) * 8;
    /// Sets an index may have.
    pub(crate) const SETS_MOST: u64 = 1 << 28;
    /// How often an index may be doubled: the tags lose one bit each time.
    pub(crate) const GROWN_MOST: u32 = 11;
}

/// A slot of the table of segments, from its start.
pub(crate) mod slot {
    pub(crate) const NUMBER: usize = 0;
    pub(crate) const FILE: usize = 8;
    pub(crate) const COUNTED: usize = 16;
    pub(crate) const STATE: usize = 24;
    pub(crate) const TURN: usize = 32;
    pub(crate) const CHECK: usize = 40;
    pub(crate) const LEN: usize = 64;

    pub(crate) const FREE: u64 = 0;
    pub(crate) const WRITING: u64 = 1;
    pub(crate) const SEALED: u64 = 2;
    /// Added to the state of a segment that holds what was moved because it is used.
    pub(crate) const KEPT: u64 = 16;
    /// Added to the state of a segment whose parts are not all in the index as yet.
    pub(crate) const UNREAD: u64 = 32;
}

/// The bits of a word of the index.
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

/// What the offsets of records are multiples of.
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
    /// How long a segment may be: all that a word can tell.
    pub(crate) const LEN_MOST: u64 = super::GRAIN << super::word::OFFSET_BITS;
}

/// The head of a record, from its start.
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

    /// A part, after the label: where it ends in the data, and the checksum of its bytes.
    pub(crate) const PART_LEN: usize = 16;
    pub(crate) const PARTS_MOST: usize = 1 << 16;
    pub(crate) const LABEL_MOST: usize = 1 << 14;
    pub(crate) const HEAD_MOST: usize = LABEL + LABEL_MOST + PARTS_MOST * PART_LEN;
}

/// The list of pins.
pub(crate) mod pins {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTPINS2";
    /// The magic of the first version, whose entries are names alone.
    pub(crate) const MAGIC_1: &[u8; 8] = b"NUTPINS1";
    pub(crate) const CHECK: usize = 8;
    pub(crate) const NAMES: usize = 16;
    /// Where the group begins in an entry.
    pub(crate) const GROUP: usize = 16;
    pub(crate) const ENTRY_LEN: usize = 32;
    pub(crate) const MOST: usize = 1 << 20;
}

const _: () = assert!(word::USES_SHIFT + word::USES_BITS == 64);
const _: () = assert!(1 << word::SLOT_BITS == index::SLOTS_MOST);
const _: () = assert!(index::HEADER_LEN.is_multiple_of(slot::LEN) && slot::CHECK + 8 <= slot::LEN);
const _: () = assert!((segment::HEADER_LEN as u64).is_multiple_of(GRAIN));
const _: () = assert!(record::LABEL.is_multiple_of(8) && record::LABEL_MOST.is_multiple_of(8));
