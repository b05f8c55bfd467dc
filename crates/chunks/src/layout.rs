//! The constants of `docs/formats/chunks.md`: offsets and values in labels.

pub(crate) const KIND: usize = 0;

/// A name that the caller chose.
pub(crate) const NAMED: u8 = 1;
/// Blocks of one length of an object with an address and a validator.
pub(crate) const BLOCKS: u8 = 2;
/// One chunk, named by the BLAKE3 hash of its bytes.
pub(crate) const CONTENT: u8 = 3;
/// The last response of an origin about the object at an address.
pub(crate) const METADATA: u8 = 4;

/// The offset of the name, for `NAMED`.
pub(crate) const NAME: usize = 1;

/// The fields after the kind, for `BLOCKS`.
pub(crate) mod blocks {
    pub(crate) const BLOCK_LEN: usize = 8;
    pub(crate) const OBJECT_LEN: usize = 16;
    pub(crate) const ADDRESS_LEN: usize = 24;
    pub(crate) const ADDRESS: usize = 28;
}

/// The offset of the hash, for `CONTENT`.
pub(crate) const HASH: usize = 1;
pub(crate) const HASH_LEN: usize = 32;

/// The offset of the address, for `METADATA`.
pub(crate) const ADDRESS: usize = 1;

/// The tags of the fields of metadata. A field is a tag, its length in four bytes, and its value.
pub(crate) mod metadata {
    pub(crate) const KEY: u8 = 1;
    pub(crate) const CHECKED: u8 = 2;
    pub(crate) const RANGES: u8 = 3;
    pub(crate) const ETAG: u8 = 4;
    pub(crate) const LAST_MODIFIED: u8 = 5;
    pub(crate) const CONTENT_TYPE: u8 = 6;
    pub(crate) const MODIFIED: u8 = 7;
    pub(crate) const STALE_IF_ERROR: u8 = 8;
}

/// Maximum length of a label in bytes.
pub(crate) const MAX_LABEL_LEN: usize = 1 << 14;

const _: () = assert!(blocks::ADDRESS == blocks::ADDRESS_LEN + 4);
