//! Reading: open files, lookups, iteration, verification.
//!
//! A [`Snapshot`] is one [`file`] or a [`set`] of them, and [`snapshot`] opens it. The other
//! modules add operations: [`lookup`] finds one key, [`many`] finds batches of keys, [`typed`]
//! finds values of a known type, [`usual`] does the same for other languages, [`iter`] iterates,
//! [`hash_range`] iterates in steps, [`differences`] compares two snapshots, [`verify`] validates
//! all bytes, [`stats`] and [`metadata`] describe the snapshot, [`readahead`] advises the system.

mod checksums;
mod decompress;
mod differences;
mod file;
mod hash_range;
mod iter;
mod lookup;
mod many;
mod map;
mod metadata;
mod readahead;
mod set;
mod snapshot;
mod stats;
mod stored;
mod typed;
mod usual;
mod verify;

pub use decompress::Scratch;
pub use differences::{Difference, Differences};
#[doc(hidden)]
pub use file::SnapshotFile;
pub use iter::{Entry, Iter, IterVerified};
pub use many::Prefetched;
pub use map::Residency;
pub use metadata::Metadata;
pub use readahead::Readahead;
pub use snapshot::{OpenOptions, Snapshot};
pub use stats::Stats;
pub use stored::StoredValue;
