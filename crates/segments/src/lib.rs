//! Append-only files in a folder that processes share: one limit for all of them, an index in
//! shared memory, eviction and recovery.
//!
//! ```
//! use nuthatch_segments::{Id, Options, Outcome, Part, Record, Segments, checksum};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("cache");
//!
//! let segments = Segments::open(&path, &Options::new().limit(64 << 20))?;
//! let name = [7; 16];
//! let parts = [Part { end: 5, checksum: checksum(b"hello") }];
//! let (label, data) = (&b"a greeting"[..], &b"hello"[..]);
//! let record = Record { name, first: 0, label, expiry: 0, parts: &parts, data };
//! assert_eq!(segments.put(&record)?, Outcome::Kept);
//!
//! let found = segments.find(&Id::new(name, 0), label).expect("the part was stored");
//! let mut bytes = [0; 5];
//! found.read(0, &mut bytes).expect("the part is intact");
//! assert_eq!(&bytes, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every process that has the folder open finds a record as soon as it is stored. Segments are
//! evicted, the least useful first, when space is needed. A process that dies loses only the record
//! that it was writing. Data from files is validated before use: a part whose checksum is wrong is
//! a miss.
//!
//! This crate stores bytes under names; its user defines their meaning. `docs/formats/segments.md`
//! specifies the files, `docs/decisions/0017-chunks.md` has the reasons for the design, and
//! `docs/decisions/0071-folders-of-the-segments.md` describes the folders of this crate.

mod acquire;
mod checksum;
mod disk;
mod error;
mod fetch_lock;
mod folder;
#[cfg(test)]
mod format_page;
mod guard;
mod id;
mod index;
mod layout;
mod limits;
mod lock;
mod map;
mod not_kept;
mod open;
mod options;
mod pinning;
mod prune;
mod put;
mod random;
mod read;
mod segment;
mod segments;
mod space;
mod stats;
mod survey;
mod upkeep;
mod work_counters;

pub use checksum::checksum;
pub use disk::{Disk, SystemDisk};
pub use error::{Error, Result};
pub use fetch_lock::FetchLock;
pub use folder::contents::Contents;
pub use id::Id;
pub use not_kept::NotKeptReason;
pub use nuthatch_clock::{Clock, ManualClock, SystemClock};
pub use nuthatch_filesystem::file_limit_advice;
pub use options::{Check, Options};
pub use put::Outcome;
pub use read::{Found, ReadError, Slice};
pub use segment::record::{Part, Record};
pub use segments::Segments;
pub use stats::Stat;
pub use survey::{RecordInfo, Unreadable, Verified, VerifyEvent, Warning};
