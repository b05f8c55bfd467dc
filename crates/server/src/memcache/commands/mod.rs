//! The commands of memcached: what a text or meta request does to the cache, and what is answered.
//!
//! memcached 1.6 is the reference. What differs, differs for a reason:
//!
//! - A counter that gets shorter is not padded with spaces. memcached pads as an optimisation that
//!   its protocol tells clients not to rely on, and other protocols here read the value, too.
//! - A counter is digits, and spaces behind them; memcached counts whatever follows a space.
//! - `incr`, `decr` and `ma` keep the marks of an item, and `ma` gives it its new time; memcached
//!   does so depending on the length of the number, and on who else reads it.
//! - Flags of `mg` and `ma` work together and not one after the other: `R` looks at the time before
//!   `T`, and `t` tells the one after it.
//! - `h` and `fetch` tell of reads of the key, those before its last write among them; `l` and `la`
//!   tell nothing.
//! - An item has no number for compare-and-set until somebody asks for it, so that most items need
//!   not keep one. Threads take numbers in blocks: a later one may be smaller, and a write with `I`
//!   is then refused as if its number were unknown.

mod admission;
mod arithmetic;
mod call;
mod execute;
mod meta;
mod meta_get;
mod refusal;
mod rewrite;
mod stats;
mod store;
mod text;
mod time;

pub use admission::admit;
pub use call::{Call, Next};
pub use execute::{execute, keys, kind, out_of_memory, replaces};
