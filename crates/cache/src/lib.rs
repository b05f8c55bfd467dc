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
//! whatever other threads write meanwhile. Short turns let memory come back sooner. What must stay
//! longer is leased: [`Turn::lease`].
//!
//! Expired items are never returned. Writes that need memory remove them; a program with a timer
//! can also call [`Turn::expire_step`], which removes them in bounded steps.
//!
//! A cache has no threads of its own, but for an [`Ahead`] that somebody starts: it has memory
//! ready before it is written, where no write shall wait for the system.
//!
//! A value has up to 512 MiB, or 5/8 of the budget, and lies in one piece: [`Cache::value_most`].
//! Where there is no room for a long one, the write fails with [`Error::Full`], and room is made
//! before the next turn, or by [`Turn::renew`]. One that comes in pieces need not be gathered
//! elsewhere: [`Turn::draft`].

mod cache;
mod clock;
mod config;
mod error;
mod hash;
mod index;
mod item;
mod memory;
mod prefill;
mod session;
mod stats;
mod write;

pub use cache::Cache;
pub use clock::{Clock, SystemClock};
pub use config::{Eviction, Options};
pub use error::{Error, Result};
pub use hash::KeyHash;
pub use item::Item;
pub use prefill::Ahead;
pub use session::item_ref::Lease;
pub use session::pending::Draft;
pub use session::state::{Session, Turn};
pub use session::value_ref::Spot;
pub use stats::Stats;
pub use write::{Condition, Expiry, Outcome, Write};
