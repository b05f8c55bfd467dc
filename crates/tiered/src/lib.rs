//! A cache whose evicted items go to disk: the cache of `nuthatch-cache`, with the item log of
//! `nuthatch-tier` below it.
//!
//! - The **demoter** thread writes items to disk before writers have to evict them. The index of
//!   the cache then points to their records.
//! - An operation that needs an item on disk has no result yet: the caller passes what
//!   [`Guard::take_on_disk`](nuthatch_cache::Guard::take_on_disk) returned to
//!   [`TieredCache::read`], and repeats the operation once the items are in memory.
//!   [`TieredCache::run`] does this for threads, and [`TieredCache::run_async`] for tasks. Reader
//!   threads read records and promote their items, or the caller performs the read itself:
//!   [`TieredCache::begin_read`]. Concurrent reads of one item are one read.
//! - A **recovery** thread points the index to the records of the last run, newest first, while
//!   the cache is already in use.
//!
//! # Modules
//!
//! `access`, `own_reads` and `partitions` use `tiered`, which uses all others; `reads` uses
//! `planned_read`, which uses `promote`; that, `demoter`, `recovery` and `dump` use `shared`, which
//! uses `records`, `first_records` and `options`; `first_records` uses `options`; `records` uses
//! `state`; `demoter` and `reads` use `waiting`. `waiting`, `convert`, `options` and `stats` use
//! none.

mod access;
mod convert;
mod demoter;
mod dump;
mod error;
mod first_records;
mod options;
mod own_reads;
mod partitions;
mod planned_read;
mod promote;
mod reads;
mod records;
mod recovery;
mod shared;
mod state;
mod stats;
mod tiered;
mod waiting;

pub use error::OpenError;
pub use first_records::{FirstRecords, folder_id};
pub use nuthatch_tier::{Damage, Disk, SystemDisk, has_item_files};
pub use options::{Event, KeptPartitions, Options, WhenBehind};
pub use partitions::{DiskRecord, Selects};
pub use planned_read::PlannedRead;
pub use stats::DiskStats;
pub use tiered::TieredCache;
pub use waiting::Waiter;
