//! What is known about the records of an item file before it is sealed.

use crate::directory;
use crate::layout::entry;
use crate::place::Place;
use crate::record::Record;

/// The entries and counts of the records in an item file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The encoded entries.
    pub(crate) entries: Vec<u8>,
    pub(crate) batches: u64,
    /// The bytes of all records.
    pub(crate) live_bytes: u64,
    /// When the last item expires; `u64::MAX` for never.
    pub(crate) last_expiry_ms: u64,
}

impl Contents {
    /// Adds a record of a file that was created at `created_ms`.
    pub(crate) fn add(&mut self, record: &Record<'_>, place: Place, created_ms: u64) {
        self.entries.extend_from_slice(&directory::encode(record, place, created_ms));
        self.live_bytes += record.encoded_len() as u64;
        self.last_expiry_ms = self.last_expiry_ms.max(record.expires_ms.unwrap_or(u64::MAX));
    }

    /// Returns the number of records.
    pub(crate) fn records(&self) -> u64 {
        (self.entries.len() / entry::LEN) as u64
    }
}
