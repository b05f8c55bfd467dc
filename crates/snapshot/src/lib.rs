//! Immutable typed key-value files, mapped by any number of processes.
//!
//! A [`Writer`] builds a file, or a set of files, from rows in any order. A [`Snapshot`] finds the
//! value of a key and returns it in place, without copying. A [`Watch`] switches readers to a new
//! file while they read.
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
//! A missing key is not an error: lookups return `None`. A value of another type than the requested
//! one is an error; values are never converted. Damage of the file is an error. Lookups decompress
//! compressed values ([`CowValue`]). `docs/formats/snapshot.md` specifies the bytes of a file, and
//! [`layout`] has their offsets.
//!
//! # Structure
//!
//! Imports point down this list only:
//!
//! - `watch`: follows a snapshot that is replaced while it is read.
//! - `rebuild`: finds how a file was built, to build it again from its entries.
//! - `reader`: opens files, finds values, iterates, verifies. `writer`: builds files.
//! - `format`: offsets, hashes, header, directory, index lines, records.
//! - `parallel`: runs work on several threads. `prefetch`: prefetches memory.
//! - `error`: errors.
//! - `values`: typed values and their stored form.
//!
//! # Files that change while they are open
//!
//! Whatever bytes a file has when it is opened, no reader crashes or reads beyond its end. But a
//! mapped file must not change: to replace it, rename another file over it, as [`Writer`] does.
//! Lookups in a file that is written to in place may return any mix of old and new bytes, or an
//! error.
//!
//! A file that is truncated in place, or whose device fails, has unreadable pages. The kernel sends
//! `SIGBUS` to a thread that accesses one:
//!
//! - By default, the signal ends the process.
//! - With the feature `sigbus`, a signal handler (crate `nuthatch-sigbus`) replaces unreadable
//!   pages by zeros, and the process continues. A lookup may then miss a key or return a value of
//!   zeros: [`Snapshot::check_readable`] fails from then on. Errors about damage become
//!   [`Error::Unreadable`], and [`Snapshot::verify`] checks after each partition. The kernel sends
//!   no signal for the rest of the last page that remains; it reads as zeros. Damage in that page
//!   is reported as [`Error::Corrupt`], and only by verification. The handler guards up to 4,096
//!   maps of a process. It is replaced if the program installs its own handler later.
//! - A snapshot that is copied into memory ([`Residency::HugePages`], [`Snapshot::from_bytes`]) no
//!   longer depends on the pages of its file.

mod error;
mod format;
mod parallel;
mod prefetch;
mod reader;
mod rebuild;
mod values;
mod watch;
mod writer;

pub use error::{Damage, Duplicate, Error, IoError, Limit, Result};
pub use format::layout;
#[doc(hidden)]
pub use reader::SnapshotFile;
pub use reader::{
    Difference, Differences, Entry, Iter, IterVerified, Metadata, OpenOptions, Prefetched,
    Readahead, Residency, Scratch, Snapshot, Stats, StoredValue,
};
pub use rebuild::BuildParameters;
pub use values::{
    CowStringList, CowValue, OwnedStringList, OwnedValue, StringList, StringListBuf, Value,
    ValueType,
};
pub use watch::{Event, Generations, Watch, WatchOptions, WatchReader, WatchStatus};
pub use writer::{
    Batch, BuiltShard, Compression, OnDuplicate, Progress, Stage, Staged, Summary, Writer,
    WriterOptions,
};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/snapshots.md")]
struct SnapshotsPage;
