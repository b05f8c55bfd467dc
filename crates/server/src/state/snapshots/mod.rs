//! Snapshots whose keys are served beside those of the cache.
//!
//! A key that begins with the prefix of a snapshot belongs to that snapshot, whether the snapshot
//! has it or not; the cache is not asked. If several prefixes match, the longest one counts.
//!
//! A thread of its own watches each snapshot, opens new generations and populates their pages
//! (`opening.rs`). Worker threads take new generations between two iterations of the event loop
//! ([`Snapshots::renew_thread`]), so all requests of an iteration read the same generation.

mod opening;
mod read;
mod report;
mod routes;
mod scan;
mod served;
mod thread;

pub use opening::{OpenError, SnapshotMemory};
pub(crate) use read::{PrefetchedKey, ReadError, is_list};
pub(crate) use report::{SNAPSHOT_FIELDS, SnapshotField, SnapshotReport};
pub(crate) use routes::SnapshotKey;
pub use routes::Snapshots;
pub(crate) use scan::is_snapshot_cursor;
pub use served::SnapshotSource;
