//! Append-only files in a folder that processes share: a budget over all of them, an index in
//! shared memory, eviction, recovery.
//!
//! ```
//! use nuthatch_segments::{Id, Options, Outcome, Part, Record, Segments, checksum};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("cache");
//!
//! let segments = Segments::open(&path, &Options::new().limit(64 << 20))?;
//! let name = [7; 16];
//! let parts = [Part { end: 5, sum: checksum(b"hello") }];
//! let (label, data) = (&b"a greeting"[..], &b"hello"[..]);
//! let record = Record { name, first: 0, label, expiry: 0, parts: &parts, data };
//! assert_eq!(segments.put(&record)?, Outcome::Kept);
//!
//! let found = segments.find(&Id::new(name, 0), label).expect("it is there");
//! let mut bytes = [0; 5];
//! found.read(0, &mut bytes).expect("it is whole");
//! assert_eq!(&bytes, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is put is there for every process that has the folder open, at once. It goes when its
//! segment is the one that is worth least and room is needed; a process that dies, however, takes
//! nothing with it but what it was just writing. Nothing read from a file is believed: what does
//! not have the right checksum is not there.
//!
//! This crate sees names and bytes; what they mean is its user's affair. The files are described in
//! `docs/formats/segments.md`, and why things are as they are in `docs/decisions/0017-chunks.md`.

mod acquire;
mod checksum;
mod clock;
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
pub use clock::{Clock, SystemClock};
pub use disk::{Disk, SystemDisk};
pub use error::{Error, Result};
pub use fetch_lock::Claimed;
pub use folder::contents::Contents;
pub use id::Id;
pub use not_kept::Reason;
pub use nuthatch_filesystem::file_limit_advice;
pub use options::{Check, Options};
pub use put::Outcome;
pub use read::{Found, Slice, Unread};
pub use segment::record::{Part, Record};
pub use segments::Segments;
pub use stats::Stat;
pub use survey::{Listed, Looked, Unreadable, Verified, Warning};
