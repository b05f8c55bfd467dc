//! An ordered store on LMDB: transactions, range scans, acknowledged batches, a change feed.
//!
//! ```
//! use nuthatch_store::{Batch, BatchOptions, Options, Range, Read, Scan, Store};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("users");
//!
//! let store = Store::open(&path, &Options::new())?;
//! let users = store.table("users")?;
//! store.update(|txn| {
//!     txn.put(&users, b"user:1", b"Ada")?;
//!     txn.put(&users, b"user:2", b"Grace")
//! })?;
//!
//! // One state of the store, read without copying.
//! let txn = store.read()?;
//! assert_eq!(txn.get(&users, b"user:1")?, Some(&b"Ada"[..]));
//! for row in txn.scan(&users, &Scan::new(Range::prefix("user:")).reverse())? {
//!     let (key, value) = row?;
//!     assert!(key.starts_with(b"user:") && !value.is_empty());
//! }
//!
//! // Writes of many tasks share commits. Each is acknowledged when it is durable.
//! let writer = store.batch_writer(&BatchOptions::new())?;
//! let ack = writer.submit(Batch::new().put(&users, b"user:3", b"Alan"))?;
//! assert!(ack.wait()?.transaction > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Store`] is shared by all threads of a process, and several processes can open the same
//! folder. Reads use a [`ReadTxn`], or, in batches, [`Store::batches`], [`Store::stream`] and
//! [`Store::scan_parallel`]. Writes use a [`WriteTxn`], which belongs to one thread, or a
//! [`BatchWriter`], which all threads can share. [`Store::watch`] returns the changes that any
//! process commits, in order and resumable.
//!
//! For bindings to other languages: handles are `Send` and `Sync`. Of the transactions, a
//! [`ReadTxn`] is `Send`, and a [`WriteTxn`] stays on its thread. [`RowBatch::raw`] returns
//! addresses and lengths that are valid while the batch lives. [`Error::code`] returns names that
//! are the same in all versions.
//!
//! A missing key is not an error: lookups return `None`. `docs/formats/store.md` describes the
//! files, and `docs/decisions/0013-store.md` the reasons for the design.

mod changes;
pub mod codec;
mod deadline;
mod environment;
mod error;
#[cfg(test)]
mod expiry_tests;
mod file;
mod file_names;
mod follower;
#[cfg(test)]
mod format_page;
#[cfg(test)]
mod growth;
mod options;
mod pages;
mod panics;
mod pool;
mod process;
mod range;
mod read;
mod scan;
mod scans;
mod shared;
mod stamp;
mod store;
mod table;
mod watch;
mod write;
mod writer;

pub use changes::{Change, Operation};
pub use error::{Damage, Error, FullCause, IoError, Result};
pub use file::walk::{Verified, verify_closed};
pub use nuthatch_clock::{Clock, ManualClock, SystemClock};
pub use options::{Durability, Options};
pub use pages::Row;
pub use process::registry::wait_closed;
pub use range::Range;
pub use read::rows::Rows;
pub use read::view::{Entry, View};
pub use read::{Read, ReadTxn};
pub use scan::Scan;
pub use scans::batch::{Batches, RawRow, RowBatch};
pub use scans::parallel::{Parallel, ParallelRows};
pub use scans::stream::{BatchStream, RowStream};
pub use store::Store;
pub use store::backup::{Compacted, compact, compact_with};
pub use store::stat::{Stat, TableStat, Usage};
pub use table::{Kind, MAX_NAME_LEN, Table};
pub use watch::{Start, Watch};
pub use write::{Condition, WriteTxn};
pub use writer::{Ack, Batch, BatchOptions, BatchWriter, Failure, Submitting, Written};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/store.md")]
struct StorePage;
