//! The item log of the cache's disk tier, and of its dumps for a warm restart.
//!
//! A folder has item files, to which records are appended in batches. A sealed file ends with a
//! directory of its records, which is read instead of the records. There is no index: the caller's
//! index points to records by their [`Place`]. The format is in `docs/formats/tier.md`, and the
//! reasons are in `docs/decisions/0085-item-log.md` and `0088-removal-log.md`.
//!
//! - [`Tier`] opens a folder, appends records, and removes item files. One process uses a folder.
//! - [`Reader`] reads records and directories, on any thread. Locating ([`Reader::read_plan`]),
//!   reading and parsing ([`ReadPlan::parse`]) are separate steps, so that another component can
//!   read, for example with `io_uring`.
//! - [`Removals`] appends to the removal log which records are removed, on any thread: an item that
//!   is overwritten or deleted stays in its item file, and must not be recovered.
//! - [`Recovery`] has what was found when the folder was opened, with the removed records.
//!
//! There are no threads: each operation blocks until it is done.
//!
//! # Examples
//!
//! ```
//! use nuthatch_tier::{AlignedBuffer, FolderState, Options, Record, Tier};
//! use std::ops::ControlFlow;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # let folder = temporary.path().join("tier");
//! let options = Options::new(64 << 20);
//! let (mut tier, _) = Tier::open(&folder, &options)?;
//! let record = Record { key: b"user:1", value: b"Ada", hash: 42, ..Record::default() };
//! let place = tier.append(&record)?;
//! tier.flush()?;
//! let mut buffer = AlignedBuffer::new(0);
//! assert_eq!(tier.reader().read(place, b"user:1", &mut buffer)?.value, b"Ada");
//! tier.close()?;
//!
//! let (tier, recovery) = Tier::open(&folder, &options)?;
//! assert!(recovery.state == FolderState::Closed && recovery.damage.is_empty());
//! let loaded = tier.reader().all_records(|_, record| {
//!     assert_eq!((record.key, record.value), (&b"user:1"[..], &b"Ada"[..]));
//!     ControlFlow::Continue(())
//! });
//! assert_eq!(loaded.records, 1);
//! # Ok(())
//! # }
//! ```

mod batch;
mod budget;
mod buffer;
mod checksum;
mod contents;
mod directory;
mod disk;
mod error;
mod fields;
mod folder;
mod footer;
#[cfg(test)]
mod format_page;
#[cfg(test)]
mod golden_tests;
mod header;
mod inspect;
mod items;
mod layout;
mod manifest;
mod options;
mod place;
mod reader;
mod record;
mod record_id;
mod recover;
mod removal_log;
mod removals;
mod scan;
mod seal;
mod shared;
mod state;
mod survey;
mod tier;
mod writer;

pub use buffer::AlignedBuffer;
pub use directory::{Directory, Entry};
pub use disk::{Disk, SystemDisk};
pub use error::{Damage, Error, Result};
pub use folder::has_item_files;
pub use nuthatch_clock::{Clock, ManualClock, SystemClock};
pub use options::Options;
pub use place::Place;
pub use reader::{Loaded, ReadError, ReadPlan, Reader};
pub use record::{Kind, Record};
pub use record_id::RecordId;
pub use recover::Recovery;
pub use removal_log::{RemovedRecords, RemovedUnits};
pub use removals::Removals;
pub use state::FolderState;
pub use survey::{Stat, Verified, stat, verify};
pub use tier::{FileInfo, Tier};
