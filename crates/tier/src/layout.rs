//! The constants of `docs/formats/tier.md`, by the names of that page: names of files, offsets and
//! limits. A test compares them.

/// The name of the manifest.
pub(crate) const MANIFEST_NAME: &str = "tier";
/// The name of a manifest that is being written.
pub(crate) const MANIFEST_NEW: &str = "tier.new";
/// The name of the lock file.
pub(crate) const LOCK_NAME: &str = "lock";
/// The beginning of the name of an item file, before its number in ten decimal digits.
pub(crate) const ITEMS_PREFIX: &str = "items-";
/// The end of the name of an item file.
pub(crate) const ITEMS_ENDING: &str = ".log";
/// The beginning of the name of a removal log, before its number in ten decimal digits. The end is
/// that of an item file.
pub(crate) const REMOVED_PREFIX: &str = "removed-";
/// The name of a removal log that is being created.
pub(crate) const REMOVED_NEW: &str = "removed.new";
/// Maximum number of an item file or a removal log: its name has ten digits.
pub(crate) const MAX_NUMBER: u64 = 9_999_999_999;

/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// Length of a block. Headers, batches, directories and footers begin at a multiple of it.
pub(crate) const BLOCK: usize = 4096;
/// Alignment of records. Offsets of records are stored in units of this many bytes.
pub(crate) const UNIT: usize = 16;
/// Bits of an offset in units, within one item file.
pub(crate) const UNIT_BITS: u32 = 22;

/// Bits of a hash that are of the partition of the key.
pub(crate) const PARTITION_BITS: u32 = 14;

/// Minimum length of an item file.
pub(crate) const MIN_FILE_LEN: u64 = 64 << 10;
/// Maximum length of an item file, unless it holds one record that needs a longer one.
pub(crate) const MAX_FILE_LEN: u64 = 64 << 20;
/// Maximum length of a batch, unless it holds one record that needs a longer one.
pub(crate) const MAX_BATCH_LEN: usize = 4 << 20;
/// Maximum length of a key.
pub(crate) const MAX_KEY_LEN: usize = u16::MAX as usize;
/// Maximum length of a value.
pub(crate) const MAX_VALUE_LEN: usize = 512 << 20;

/// The manifest: one block.
pub(crate) mod manifest {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTTIER\0";

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const VERSION_AT: usize = 8;
    pub(crate) const STATE: usize = 12;
    pub(crate) const SALT: usize = 16;
    pub(crate) const HASH_SEED: usize = 24;
    pub(crate) const BOOT: usize = 32;
    pub(crate) const CHECK: usize = super::BLOCK - 8;

    /// The state of a folder that a process uses, or whose process ended without closing it.
    pub(crate) const OPEN: u32 = 0;
    /// The state of a folder that was closed: all files are sealed and synced.
    pub(crate) const CLOSED: u32 = 1;
    /// The state of a folder that was open when the system stopped.
    pub(crate) const LOST_POWER: u32 = 2;
    /// Value of [`STATE`] while the records may be out of date.
    pub(crate) const OUTDATED: u32 = 3;
}

/// The header of an item file: one block.
pub(crate) mod header {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTITEMS";

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const VERSION_AT: usize = 8;
    pub(crate) const NUMBER: usize = 16;
    pub(crate) const SALT: usize = 24;
    pub(crate) const FOLDER_SALT: usize = 32;
    pub(crate) const CREATED: usize = 40;
    pub(crate) const CHECK: usize = super::BLOCK - 8;
}

/// The header of a batch.
pub(crate) mod batch {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTBATCH";

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const SALT: usize = 8;
    pub(crate) const SEQUENCE: usize = 16;
    pub(crate) const LEN: usize = 24;
    pub(crate) const USED: usize = 28;
    pub(crate) const RECORDS: usize = 32;
    pub(crate) const DATA_CHECK: usize = 40;
    pub(crate) const CHECK: usize = 56;
    pub(crate) const HEADER_LEN: usize = 64;
}

/// A record.
pub(crate) mod record {
    pub(crate) const CHECK: usize = 0;
    pub(crate) const HASH: usize = 8;
    pub(crate) const VALUE_LEN: usize = 16;
    pub(crate) const KEY_LEN: usize = 20;
    pub(crate) const KIND: usize = 22;
    pub(crate) const DATABASE: usize = 23;
    pub(crate) const FIELDS: usize = 24;

    /// Bits of the value's length. The frequency is in the two bits above.
    pub(crate) const VALUE_LEN_BITS: u32 = 30;
    /// Maximum frequency.
    pub(crate) const MAX_FREQUENCY: u8 = 3;
    /// Bits of the kind. The flags are in the bits above.
    pub(crate) const KIND_BITS: u32 = 4;

    pub(crate) const HAS_EXPIRY: u8 = 1 << 4;
    pub(crate) const HAS_CAS: u8 = 1 << 5;
    pub(crate) const HAS_CLIENT_FLAGS: u8 = 1 << 6;
    pub(crate) const IS_COMPRESSED: u8 = 1 << 7;

    /// Maximum length of the bytes before the key: all optional fields are present.
    pub(crate) const MAX_HEAD_LEN: usize = FIELDS + 8 + 8 + 4;
}

/// An entry of the directory.
pub(crate) mod entry {
    pub(crate) const HASH: usize = 0;
    pub(crate) const LOCATION: usize = 8;
    pub(crate) const EXPIRY: usize = 12;
    pub(crate) const LEN: usize = 16;

    /// The bits of `place` above the offset in units: the number of blocks.
    pub(crate) const BLOCKS_BITS: u32 = 8;
    /// The number of blocks is this or more; it follows from the next entry.
    pub(crate) const MANY_BLOCKS: u32 = (1 << BLOCKS_BITS) - 1;
}

/// The footer of a sealed item file: its last block.
pub(crate) mod footer {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTSEALD";

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const NUMBER: usize = 8;
    pub(crate) const SALT: usize = 16;
    pub(crate) const FILE_LEN: usize = 24;
    pub(crate) const DIRECTORY: usize = 32;
    pub(crate) const RECORDS: usize = 40;
    pub(crate) const BATCHES: usize = 48;
    pub(crate) const LIVE_BYTES: usize = 56;
    pub(crate) const LAST_EXPIRY: usize = 64;
    pub(crate) const SEALED: usize = 72;
    pub(crate) const DIRECTORY_CHECK: usize = 80;
    pub(crate) const CHECK: usize = super::BLOCK - 8;
}

/// The header of a removal log: one block.
pub(crate) mod removed {
    pub(crate) const MAGIC: &[u8; 8] = b"NUTREMOV";

    pub(crate) const MAGIC_AT: usize = 0;
    pub(crate) const VERSION_AT: usize = 8;
    pub(crate) const NUMBER: usize = 16;
    pub(crate) const SALT: usize = 24;
    pub(crate) const FOLDER_SALT: usize = 32;
    pub(crate) const BOUND: usize = 40;
    pub(crate) const PREVIOUS_END: usize = 48;
    pub(crate) const PREVIOUS_CHAIN: usize = 56;
    pub(crate) const CHECK: usize = super::BLOCK - 8;

    /// The offset of the mark, an entry that is reserved for a log that cannot be extended.
    pub(crate) const MARK: u64 = super::BLOCK as u64;
    /// The offset of the first entry.
    pub(crate) const FIRST: u64 = MARK + super::removal::LEN;
}

/// An entry of a removal log.
pub(crate) mod removal {
    /// Length in bytes.
    pub(crate) const LEN: u64 = 8;
    /// Bits of the id. The check and the kind are in the bits above.
    pub(crate) const ID_BITS: u32 = 56;
    /// Bits of the check.
    pub(crate) const CHECK_BITS: u32 = 5;
    /// The kind of an entry that removes the record with the id.
    pub(crate) const RECORD: u64 = 0b011;
    /// The kind of an entry that removes all records with lower ids.
    pub(crate) const ALL_BEFORE: u64 = 0b101;
    /// The kind of an entry that commits all records with lower ids, or that names a changed key.
    pub(crate) const OTHER: u64 = 0b110;
    /// Bits of the hash of a changed key. The bits of the id above are 1.
    pub(crate) const HASH_BITS: u32 = 54;
}

const _: () = {
    assert!((MAX_NUMBER + 1) << UNIT_BITS < 0b11 << removal::HASH_BITS);
    assert!(removal::HASH_BITS + 2 == removal::ID_BITS);
    assert!(BLOCK.is_multiple_of(UNIT) && batch::HEADER_LEN.is_multiple_of(UNIT));
    assert!(MAX_FILE_LEN as usize / UNIT == 1 << UNIT_BITS);
    assert!(UNIT_BITS + entry::BLOCKS_BITS + 2 == u32::BITS);
    assert!(MAX_VALUE_LEN < 1 << record::VALUE_LEN_BITS);
    assert!(BLOCK.is_multiple_of(entry::LEN));
};

/// Rounds a length up to a multiple of [`BLOCK`].
pub(crate) const fn blocks_len(len: u64) -> u64 {
    len.next_multiple_of(BLOCK as u64)
}
