//! Reading: open files, lookups, iteration, verification.
//!
//! [`snapshot`] opens a file. The other files add operations to [`Snapshot`]: [`lookup`] finds one
//! key, [`many`] finds batches of keys, [`typed`] finds values of a known type, [`iter`] iterates,
//! [`verify`] validates the file, [`stats`] describes it.

mod checksums;
mod decompress;
mod iter;
mod lookup;
mod many;
mod map;
mod snapshot;
mod stats;
mod stored;
mod typed;
mod verify;

pub use decompress::Scratch;
pub use iter::{Entry, Iter, IterVerified};
pub use map::Residency;
pub use snapshot::{OpenOptions, Snapshot};
pub use stats::Stats;
pub use stored::StoredValue;
