//! A cache in memory: one budget that holds, expiry to the millisecond, scan-resistant eviction,
//! and reads that take no lock and write nothing that other threads read.
//!
//! ```
//! use nuthatch_cache::{Cache, Options, Write};
//!
//! let cache = Cache::new(Options::new().memory(64 << 20))?;
//! let mut session = cache.session()?;
//! let turn = session.turn();
//! turn.set(b"greeting", b"hello", &Write::new().expires_in_ms(60_000))?;
//! assert_eq!(turn.get(b"greeting").map(|item| item.value().to_vec()), Some(b"hello".to_vec()));
//! assert!(turn.remove(b"greeting"));
//! assert!(turn.get(b"greeting").is_none());
//! # Ok::<(), nuthatch_cache::Error>(())
//! ```
//!
//! A [`Cache`] is shared by all threads of a process. Each thread works through a [`Session`] of
//! its own, and within it in turns: what a [`Turn`] has read stays as it is until the turn ends,
//! whatever other threads write meanwhile. Short turns let memory come back sooner.

mod arena;
mod cache;
mod clock;
mod config;
mod epoch;
mod error;
mod ghost;
mod hash;
mod item;
mod reclaim;
mod scan;
mod segments;
mod session;
mod slot;
mod stats;
mod table;
mod tables;
mod write;

pub use cache::Cache;
pub use clock::{Clock, SystemClock};
pub use config::{Eviction, Options};
pub use error::{Error, Result};
pub use hash::KeyHash;
pub use item::Item;
pub use session::{Session, Turn};
pub use stats::Stats;
pub use write::{Condition, Expiry, Outcome, Write};
