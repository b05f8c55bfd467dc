//! The commands of memcached, executed on the cache.
//!
//! memcached 1.6 is the reference. Differences:
//!
//! - A counter that becomes shorter is not padded with spaces, since other protocols read the
//!   value,
//!   too. memcached pads as an optimization, and its documentation asks clients not to rely on it.
//! - A counter consists of digits and trailing spaces. memcached ignores any text after a space.
//! - `incr`, `decr` and `ma` keep the protocol bits of an item, and `ma` sets its new expiry. In
//!   memcached this depends on the length of the number and on concurrent readers.
//! - The flags of `mg` and `ma` take effect together, not one after the other: `R` compares the
//!   expiry before `T`, and `t` returns the one after it.
//! - `h` and `fetch` report recent reads of the key, including those before its last write. `l` and
//!   `la` are always 0.
//! - An item has no CAS number until a client requests it, so most items need not store one.
//!   Threads allocate numbers in blocks: a later number may be smaller. A write with `I` is then
//!   refused as if its number were unknown.

mod admission;
mod arithmetic;
mod call;
mod cluster;
mod execute;
mod meta;
mod meta_get;
mod refusal;
mod resp_command;
mod rewrite;
mod stats;
mod store;
mod text;
mod time;

pub use admission::admit;
pub(crate) use admission::may_execute;
pub use call::{Call, Next};
pub(crate) use cluster::{forward, refuse};
pub(crate) use execute::noreply;
pub use execute::{execute, keys, kind, out_of_memory, replaces};
pub(crate) use resp_command::command;
