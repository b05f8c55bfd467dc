//! The changes that a store keeps for watches.

use nuthatch_store::Store;

/// Maximum size of the kept changes in bytes, divided by their maximum number.
const BYTES_PER_CHANGE: u64 = 4096;

/// Sets the maximum number of changes that a store keeps. Together they take at most
/// [`BYTES_PER_CHANGE`] times as many bytes.
pub(crate) fn keep_changes(store: &Store, max: u64) -> nuthatch_store::Result<()> {
    store.keep_changes(max, max.saturating_mul(BYTES_PER_CHANGE))
}
