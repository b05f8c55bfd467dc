//! A key in a table of the live page.

use nuthatch_listen::LiveValue;

/// The first bytes of a key, its length, and its hash, which tells long keys apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeptKey {
    pub(crate) start: Vec<u8>,
    pub(crate) len: usize,
    pub(crate) hash: u64,
}

impl KeptKey {
    /// Maximum bytes of a key that are kept.
    pub(crate) const MAX_START_LEN: usize = 256;

    /// Keeps a key with this hash.
    pub(crate) fn new(key: &[u8], hash: u64) -> Self {
        Self { start: Self::start(key).to_vec(), len: key.len(), hash }
    }

    /// Returns the bytes of a key that are kept.
    pub(crate) fn start(key: &[u8]) -> &[u8] {
        &key[..key.len().min(Self::MAX_START_LEN)]
    }

    /// Returns the key for the live page.
    pub(crate) fn into_live(self) -> LiveValue {
        let Self { start, len, hash } = self;
        if start.len() == len {
            return LiveValue::Private(start);
        }
        LiveValue::PrivateStart { start, len: len as u64, hash }
    }
}
