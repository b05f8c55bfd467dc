//! Immutable typed key-value files, mapped by any number of processes.
//!
//! A [`Writer`] turns rows, in any order, into one file; a [`Snapshot`] answers lookups from it,
//! where the values lie; a [`Watch`] moves readers to a new file while they read.
//!
//! ```
//! use nuthatch_snapshot::{Snapshot, Value, Writer};
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("users.nut");
//! let mut writer = Writer::create(&path)?;
//! writer.insert(b"user:1.name", Value::String("Ada"))?;
//! writer.finish()?;
//! assert_eq!(Snapshot::open(&path)?.get_string(b"user:1.name")?.as_deref(), Some("Ada"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A missing key is no error: lookups return `None`. A value of another type than the one asked for
//! is one, and so is a damaged file; nothing is ever coerced. A value that was compressed reads as
//! any other ([`CowValue`]). The bytes are described in `docs/formats/snapshot.md`.
//!
//! # Files that change while they are open
//!
//! Whatever bytes a file has when it is opened, no reader crashes or reads beyond it. But a file
//! that is mapped must not change: replace it by renaming another over it, as [`Writer`] does. Of a
//! file that is written to in place, lookups may return any mix of old and new bytes, or an error.
//!
//! A file that is truncated in place, or on a device that fails, lacks pages. The kernel sends
//! `SIGBUS` to a thread that touches one:
//!
//! - By default, that ends the process.
//! - With the feature `sigbus`, a signal handler (crate `nuthatch-sigbus`) replaces the pages by
//!   zeros, and the process goes on. A lookup may then miss a key, or return a value of zeros:
//!   [`Snapshot::check_readable`] fails from then on. Errors about damage become
//!   [`Error::Unreadable`], and [`Snapshot::verify`] checks after each part. The kernel sends no
//!   signal for the rest of the last page that remains, which reads as zeros: there, damage is
//!   reported as such, and only by what verifies. The handler guards up to 4,096 maps of a process;
//!   it is replaced if the program installs its own afterwards.
//! - A file that was copied ([`Residency::HugePages`], [`Snapshot::from_bytes`]) does not depend on
//!   its pages any more.

mod bucket;
mod cast;
mod compression;
mod directory;
mod error;
mod hash;
mod header;
mod iter;
pub mod layout;
mod many;
mod map;
mod owned;
mod parallel;
mod reader;
mod record;
mod stats;
mod stored;
mod string_list;
mod typed;
mod value;
mod verify;
mod watch;
mod writer;

pub use compression::{Compression, Scratch};
pub use error::{Damage, Duplicate, Error, IoError, Limit, Result};
pub use iter::{Entry, Iter, IterVerified};
pub use map::Residency;
pub use owned::{CowStringList, CowValue, OwnedStringList, OwnedValue};
pub use reader::{OpenOptions, Snapshot};
pub use stats::Stats;
pub use stored::Stored;
pub use string_list::{StringList, StringListBuf};
pub use value::{Value, ValueType};
pub use watch::{Event, Generations, Watch, WatchOptions, WatchReader, WatchStatus};
pub use writer::{Batch, OnDuplicate, Progress, Stage, Summary, Writer, WriterOptions};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
