//! Ranges of large remote objects on local disk: verified, combined from any number of puts, shared
//! by all processes of a machine, within one limit.
//!
//! ```
//! use nuthatch_chunks::{Chunks, Key, Lookup, Options};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("cache");
//!
//! let chunks = Chunks::open(&path, &Options::new().limit(64 << 20))?;
//!
//! // Chunks of any lengths: number 3 of an object has three bytes, number 4 has two.
//! let key = Key::named("an object")?;
//! chunks.put(&key, 3..5, &[0, 3, 5], b"abcde")?;
//! let read = chunks.get(&key, 3..5)?.found().expect("both chunks are stored");
//! assert_eq!((&read.data[..], &read.offsets[..]), (&b"abcde"[..], &[0, 3, 5][..]));
//! assert_eq!(chunks.get(&key, 2..6)?, Lookup::Missing(vec![2..3, 5..6]));
//!
//! // Blocks of an object with an address: ranges of bytes.
//! let file = chunks.blocks("https://host/file", "\"v1\"", 2500, 1000)?;
//! file.put(1000, &[7; 1500])?;
//! let view = file.view(1200..2400)?.found().expect("the blocks are stored");
//! assert_eq!(view.to_vec(), [7; 1200]);
//! assert_eq!(file.get(0..10)?, Lookup::Missing(vec![0..1000]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Ranges do not include their end. Missing chunks, and chunks that could not be kept, are not
//! errors: [`Lookup::Missing`] has the ranges to fetch, and [`Stored::not_kept`] the reason for
//! which the caller has the only copy. [`Chunks::single_flight`] ensures that callers fetch each
//! missing range once.
//!
//! Bytes are returned in three ways: copied into a buffer of the caller, which no other process can
//! change; in a new buffer; and as a [`View`] of the files, without a copy.
//! `docs/formats/segments.md` describes how other programs that write to the files can change
//! views.
//!
//! `docs/formats/chunks.md` specifies the labels, `docs/formats/segments.md` the files, and
//! `docs/decisions/0017-chunks.md` has the reasons for the design.

mod blocks;
mod chunks;
#[cfg(feature = "blake3")]
mod content;
mod error;
mod fetch;
mod flights;
#[cfg(test)]
mod format_page;
mod get;
mod key;
mod layout;
mod metadata;
mod pins;
mod plan;
mod prune;
mod put;
mod ranges;
mod survey;
#[cfg(feature = "async")]
mod tasks;
mod view;

pub use blocks::{BLOCK_LEN, Blocks};
pub use chunks::Chunks;
pub use error::{Error, Result};
pub use flights::{Fetched, Flight, SingleFlight, Waiter};
pub use get::Read;
pub use key::{Description, Key};
pub use metadata::Metadata;
/// An error of the folder.
pub use nuthatch_segments::Error as FolderError;
pub use nuthatch_segments::{
    Check, Clock, Contents, Disk, FetchLock, NotKeptReason, Options, Stat, SystemClock, SystemDisk,
    Unreadable, Verified, Warning, file_limit_advice,
};
pub use plan::Lookup;
pub use put::Stored;
pub use ranges::merge_gaps;
pub use survey::{Object, VerifyEvent};
#[cfg(feature = "async")]
pub use tasks::{Filled, Task, TaskChunks};
pub use view::View;
