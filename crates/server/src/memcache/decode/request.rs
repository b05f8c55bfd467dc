//! Requests of memcached clients.

use super::base64::{self, KeyBuffer};
use super::flags::Flags;
use super::words::plain_len;

/// A request. Its text borrows from the decoded bytes. Keys are 1 to 250 bytes without control
/// characters.
///
/// Times are as received, in seconds: 0 means never, a negative time has expired, a time of up to
/// 30 days is relative to now, and a greater one is Unix time. A request with `noreply` gets no
/// reply. A meta request with the flag `q` gets no reply with a usual result: see
/// [`crate::memcache::meta_reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'b> {
    /// `get`, `gets`, `gat`, `gats`: the value of each key that exists, then `END`.
    Get(Get<'b>),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Store(Store<'b>),
    /// `incr`, `decr`.
    Arith(Arith<'b>),
    /// `touch`: a new expiry for a key.
    Touch {
        /// The key.
        key: &'b [u8],
        /// The expiry.
        exptime: i64,
        /// Whether nothing is replied.
        noreply: bool,
    },
    /// `delete`: removes a key.
    Delete {
        /// The key.
        key: &'b [u8],
        /// Whether nothing is replied.
        noreply: bool,
    },
    /// `flush_all`: removes all items that were stored before this time.
    FlushAll {
        /// The time; 0 means now.
        exptime: i64,
        /// Whether nothing is replied.
        noreply: bool,
    },
    /// `stats`: statistics.
    Stats {
        /// The arguments; empty for the general statistics.
        args: &'b [u8],
    },
    /// `version`: the version of the server.
    Version,
    /// `verbosity`: sets the log level of memcached; has no effect here.
    Verbosity {
        /// The level.
        level: u32,
        /// Whether nothing is replied.
        noreply: bool,
    },
    /// `quit`: closes the connection after all replies.
    Quit,
    /// `mg`, `ms`, `md`, `ma`, `me`.
    Meta(Meta<'b>),
    /// `mn`: replies `MN`, so that the client knows that all requests before it are answered.
    Noop,
    /// A request whose value exceeds the limit. The decoder skips the value.
    TooLarge(TooLarge<'b>),
}

/// Keys to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'b> {
    /// The keys, at least one except for `gat` and `gats`.
    pub keys: Keys<'b>,
    /// The new expiry of the keys, for `gat` and `gats`.
    pub exptime: Option<i64>,
    /// Whether the reply contains CAS numbers, for `gets` and `gats`.
    pub cas: bool,
}

/// The keys of a line, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys<'b> {
    /// Keys separated by spaces.
    pub(crate) text: &'b [u8],
}

impl Keys<'_> {
    /// Returns the bytes of all keys with the spaces between them.
    #[expect(clippy::len_without_is_empty, reason = "of bytes, and there nearly always are some")]
    pub fn len(&self) -> usize {
        self.text.len()
    }
}

impl<'b> IntoIterator for Keys<'b> {
    type Item = &'b [u8];
    type IntoIter = KeysIter<'b>;

    #[inline]
    fn into_iter(self) -> KeysIter<'b> {
        KeysIter { rest: self.text }
    }
}

/// An iterator over [`Keys`].
#[derive(Clone, Debug)]
pub struct KeysIter<'b> {
    rest: &'b [u8],
}

impl<'b> Iterator for KeysIter<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        let start = self.rest.iter().position(|&byte| byte != b' ')?;
        let text = &self.rest[start..];
        let (key, rest) = text.split_at(plain_len(text));
        self.rest = rest;
        Some(key)
    }
}

/// The condition of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// None: stores in any case.
    Set,
    /// The key is missing.
    Add,
    /// The key exists.
    Replace,
    /// The key exists. The value is appended, and flags and expiry do not change.
    Append,
    /// The key exists. The value is prepended, and flags and expiry do not change.
    Prepend,
}

/// A value to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'b> {
    /// The condition.
    pub mode: StoreMode,
    /// The key.
    pub key: &'b [u8],
    /// A number that the client stores with the value.
    pub flags: u32,
    /// The expiry.
    pub exptime: i64,
    /// The CAS number that the item must have, for `cas`.
    pub cas: Option<u64>,
    /// Whether nothing is replied.
    pub noreply: bool,
    /// The value.
    pub value: &'b [u8],
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Adds; wraps around at 64 bits.
    Increment,
    /// Subtracts; stops at 0.
    Decrement,
}

/// A number to increment or decrement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arith<'b> {
    /// The direction.
    pub direction: Direction,
    /// The key.
    pub key: &'b [u8],
    /// The delta.
    pub delta: u64,
    /// Whether nothing is replied.
    pub noreply: bool,
}

/// A meta request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'b> {
    /// The operation.
    pub verb: MetaVerb,
    /// The key.
    pub key: Key<'b>,
    /// The value to store; empty for other operations.
    pub value: &'b [u8],
    /// Options and requested metadata.
    pub flags: Flags<'b>,
}

/// The operation of a meta request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVerb {
    /// `mg`.
    Get,
    /// `ms`.
    Set(StoreMode),
    /// `md`.
    Delete,
    /// `ma`.
    Arith(Direction),
    /// `me`.
    Debug,
}

/// A key that may be encoded in base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'b> {
    pub(crate) text: &'b [u8],
    pub(crate) base64: bool,
}

impl<'b> Key<'b> {
    /// Returns the key as received, which is how replies return it.
    pub fn text(&self) -> &'b [u8] {
        self.text
    }

    /// Returns the key, decoded into `room` if it is base64.
    #[inline]
    pub fn bytes<'r>(&self, room: &'r mut KeyBuffer) -> &'r [u8]
    where
        'b: 'r,
    {
        if self.base64 { base64::decode(self.text, room) } else { self.text }
    }
}

/// An object that is refused because of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge<'b> {
    /// The key.
    pub key: Key<'b>,
    /// Whether the stored value must be removed, since clients would take it for the new one.
    pub remove: bool,
    /// Whether nothing is replied, instead of [`crate::memcache::Error::TooLarge`].
    pub noreply: bool,
}
