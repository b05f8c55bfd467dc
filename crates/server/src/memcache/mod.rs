//! The protocols of memcached on one connection: text commands, and meta commands of two letters.
//!
//! A [`Decoder`] turns received bytes into [`Request`]s that borrow from them; the functions in
//! [`reply`] and [`meta_reply`] turn what came of them into bytes. memcached 1.6 is the reference;
//! where Nuthatch differs, the place that differs says why.

pub mod commands;
mod decode;
pub(crate) mod driver;
pub mod meta_reply;
pub mod reply;

pub use decode::base64::KeyBuffer;
pub use decode::error::Error;
pub use decode::flags::Flags;
pub use decode::request::{
    Arith, Direction, Get, Key, Keys, KeysIter, Meta, MetaVerb, Request, Store, StoreMode, TooLarge,
};
pub(crate) use decode::with_value;
pub use decode::{Decoder, Limits, Step};

/// Bytes of the longest key; of its base64 text where it has one, as in memcached.
pub const MAX_KEY_LEN: usize = 250;

/// Bytes of the longest line, without its end, of all commands but those that take many keys.
pub const MAX_LINE_LEN: usize = 2048;

/// Bytes of the longest data block that any limit allows: lengths are 32 bits in memcached.
pub const MAX_OBJECT_LEN: usize = i32::MAX as usize - 2;
