//! Ranges of big remote objects on local disk: verified, spliced from however many puts brought
//! them, shared by all processes of a machine, under one limit.
//!
//! ```
//! use nuthatch_chunks::{Chunks, Key, Lookup, Options};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("cache");
//!
//! let chunks = Chunks::open(&path, &Options::new().limit(64 << 20))?;
//!
//! // Chunks of any lengths: numbers 3 and 4 of an object, one of three bytes and one of two.
//! let key = Key::named("an object")?;
//! chunks.put(&key, 3..5, &[0, 3, 5], b"abcde")?;
//! let read = chunks.get(&key, 3..5)?.found().expect("they are there");
//! assert_eq!((&read.data[..], &read.offsets[..]), (&b"abcde"[..], &[0, 3, 5][..]));
//! assert_eq!(chunks.get(&key, 2..6)?, Lookup::Missing(vec![2..3, 5..6]));
//!
//! // Blocks of something that has an address: ranges of bytes.
//! let file = chunks.blocks("https://host/file", "\"v1\"", 2500, 1000)?;
//! file.put(1000, &[7; 1500])?;
//! let view = file.view(1200..2400)?.found().expect("it is there");
//! assert_eq!(view.to_vec(), [7; 1200]);
//! assert_eq!(file.get(0..10)?, Lookup::Missing(vec![0..1000]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Ranges never include their end. That chunks are missing is no error, nor that they could not be
//! kept: [`Lookup::Missing`] says what to fetch, [`Stored::not_kept`] why the caller keeps the only
//! copy. Whoever fetches first asks [`Chunks::claim`], so that each gap is fetched once.
//!
//! Bytes come back in three ways: copied into a buffer of the caller's, which nothing can change
//! afterwards; in a buffer of their own; and as a [`View`] of the files themselves, which costs no
//! copy. `docs/formats/segments.md` tells what a program that knows nothing of this cache can do to
//! views by writing to the files.
//!
//! Labels are described in `docs/formats/chunks.md`, files in `docs/formats/segments.md`, and why
//! things are as they are in `docs/decisions/0017-chunks.md`.

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
pub use flights::{Claim, Fetched, Ticket, Waiting};
pub use get::Read;
pub use key::{Described, Key};
pub use metadata::Metadata;
/// What can go wrong with the folder.
pub use nuthatch_segments::Error as FolderError;
pub use nuthatch_segments::{
    Check, Claimed, Clock, Contents, Disk, Options, Reason, Stat, SystemClock, SystemDisk,
    Unreadable, Verified, Warning, file_limit_advice,
};
pub use plan::Lookup;
pub use put::Stored;
pub use ranges::merge_gaps;
pub use survey::{Looked, Object};
#[cfg(feature = "async")]
pub use tasks::{Filled, Task, TaskChunks};
pub use view::View;
