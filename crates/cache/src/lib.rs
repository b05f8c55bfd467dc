//! An in-memory cache with a hard memory budget, expiry to the millisecond, scan-resistant eviction
//! (S3-FIFO), and reads without locks or shared writes.
//!
//! ```
//! use nuthatch_cache::{Cache, Options, Write};
//!
//! let cache = Cache::new(Options::new().memory(64 << 20))?;
//! let mut session = cache.session()?;
//! let guard = session.guard();
//! guard.set(b"greeting", b"hello", &Write::new().expires_in_ms(60_000))?;
//! assert_eq!(guard.get(b"greeting").map(|item| item.value().to_vec()), Some(b"hello".to_vec()));
//! assert!(guard.remove(b"greeting"));
//! assert!(guard.get(b"greeting").is_none());
//! # Ok::<(), nuthatch_cache::Error>(())
//! ```
//!
//! A [`Cache`] is shared by all threads of a process. Each thread uses a [`Session`] of its own,
//! and works under epoch guards: items that were read under a [`Guard`] stay in memory, unchanged,
//! until the guard ends, whatever other threads write. Freed memory becomes available when guards
//! end, so keep them short. An [`ItemRef`] keeps an item for longer: see [`Guard::item_ref`].
//!
//! Expired items are never returned. Writes that need memory remove them. A program with a timer
//! can also call [`Guard::expire_step`], which removes them in bounded steps.
//!
//! A cache has no threads of its own. The optional [`Prefill`] thread prepares memory before it is
//! written, so that writes do not wait for page faults.
//!
//! A value is contiguous. Its maximum length is 512 MiB, or 5/8 of the budget if that is less:
//! [`Cache::max_value_len`]. A write that finds no memory under its guard fails with
//! [`Error::Full`]. Then call [`Guard::renew`] or begin the next guard, which frees memory, and
//! retry. A value that arrives in pieces can be received directly into the memory of the cache:
//! [`Guard::begin_value`].
//!
//! # Modules
//!
//! Modules import each other in one direction: `session` uses `cache`, `index` and `memory`;
//! `cache` uses `index` and `memory`; `index` uses `memory`; the files next to this one import
//! none of them, except `prefill`, which uses `cache`. A test checks this.

mod cache;
mod config;
mod error;
mod hash;
mod index;
mod item;
mod memory;
mod prefill;
mod records;
mod session;
mod stats;
mod write;

pub use cache::Cache;
pub use config::{Eviction, Options};
pub use error::{Error, Result};
pub use hash::KeyHash;
pub use item::Item;
pub use nuthatch_clock::{Clock, ManualClock, SystemClock};
pub use prefill::Prefill;
pub use records::{OnDisk, Records};
pub use session::demotions::Demotions;
pub use session::item_ref::ItemRef;
pub use session::pending::PendingValue;
pub use session::prefetch::BatchKey;
pub use session::state::{Guard, Session};
pub use session::value_ref::ValueRef;
pub use stats::Stats;
pub use write::{Condition, Expiry, Outcome, Write};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/cache.md")]
struct CachePage;
