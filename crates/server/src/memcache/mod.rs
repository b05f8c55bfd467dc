//! The memcached protocols: text commands, and meta commands of two letters, on the same
//! connection.
//!
//! A [`Decoder`] turns received bytes into [`Request`]s that borrow from them. [`reply`] and
//! [`meta_reply`] write replies, and [`commands`] executes requests. The behaviour is that of
//! memcached 1.6; comments explain each difference.

pub mod commands;
mod decode;
pub(crate) mod driver;
pub(crate) mod forwarded;
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

/// Maximum bytes of a key as received: for a key in base64, of the base64 text, as in memcached.
pub const MAX_KEY_LEN: usize = 250;

/// Maximum bytes of a line without its end, except for commands with many keys.
pub const MAX_LINE_LEN: usize = 2048;

/// Maximum bytes of a data block, whatever the settings: memcached has signed lengths of 32 bits.
pub const MAX_OBJECT_LEN: usize = i32::MAX as usize - 2;
