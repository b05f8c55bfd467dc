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

mod access;
mod append;
mod claims;
mod clock;
mod contents;
mod disk;
mod error;
mod folder;
#[cfg(test)]
mod format_page;
mod grow;
mod id;
mod index;
mod indexes;
mod lanes;
mod layout;
mod lend;
mod lock;
mod map;
mod options;
mod pages;
mod pins;
mod present;
mod read;
mod reason;
mod record;
mod room;
mod segment;
mod segments;
mod sets;
mod settings;
mod settle;
mod stats;
mod sum;
mod survey;
mod table;
mod timed;
mod turn;
mod verify;
mod waiting;
mod warnings;
mod work;

pub use append::Outcome;
pub use claims::Claimed;
pub use clock::{Clock, SystemClock};
pub use contents::Contents;
pub use disk::{Disk, SystemDisk};
pub use error::{Error, Result};
pub use id::Id;
pub use lend::Slice;
pub use nuthatch_filesystem::file_limit_advice;
pub use options::{Check, Options};
pub use read::{Found, Unread};
pub use reason::Reason;
pub use record::{Part, Record};
pub use segments::Segments;
pub use stats::Stat;
pub use sum::checksum;
pub use survey::{Listed, Unreadable};
pub use verify::{Looked, Verified};
pub use warnings::Warning;
