//! What clients ask for.

use super::base64::{self, KeyBuffer};
use super::flags::Flags;
use super::words::plain_len;

/// A request. All text in it lies in the bytes that were decoded; keys are 1 to 250 plain bytes.
///
/// A time is as it came: 0 is never, a negative one has passed, up to 30 days is from now on, and
/// more is Unix time. With `noreply`, and in `quiet` meta requests, nothing at all is answered or
/// only what is not the rule: see [`crate::memcache::meta_reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'b> {
    /// `get`, `gets`, `gat`, `gats`: a value for each key that there is, then `END`.
    Get(Get<'b>),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Store(Store<'b>),
    /// `incr`, `decr`.
    Arith(Arith<'b>),
    /// A new time for a key.
    Touch {
        /// Of what.
        key: &'b [u8],
        /// When it expires.
        exptime: i64,
        /// Whether to answer nothing.
        noreply: bool,
    },
    /// Remove a key.
    Delete {
        /// Of what.
        key: &'b [u8],
        /// Whether to answer nothing.
        noreply: bool,
    },
    /// All that is stored before a time expires at that time.
    FlushAll {
        /// The time; 0 is now.
        exptime: i64,
        /// Whether to answer nothing.
        noreply: bool,
    },
    /// Statistics.
    Stats {
        /// What follows the command; empty for the general ones.
        args: &'b [u8],
    },
    /// The version of the server.
    Version,
    /// How much the server logs.
    Verbosity {
        /// The more, the more.
        level: u32,
        /// Whether to answer nothing.
        noreply: bool,
    },
    /// Close the connection once all before is answered.
    Quit,
    /// `mg`, `ms`, `md`, `ma`, `me`.
    Meta(Meta<'b>),
    /// `mn`: answer `MN`, so that the client knows that all before is answered.
    Noop,
    /// An object over the limit. The decoder skips its bytes.
    TooLarge(TooLarge<'b>),
}

/// Keys to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'b> {
    /// The keys, at least one but for `gat` and `gats`.
    pub keys: Keys<'b>,
    /// With `gat` and `gats`, when the keys expire from now on.
    pub exptime: Option<i64>,
    /// Whether the client wants to know the compare-and-swap numbers: `gets`, `gats`.
    pub cas: bool,
}

/// The keys of a line, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys<'b> {
    /// Plain text and spaces.
    pub(crate) text: &'b [u8],
}

impl Keys<'_> {
    /// Bytes of all keys, with the spaces between them.
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

/// Goes through [`Keys`].
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

/// What storing depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Nothing.
    Set,
    /// The key is not there.
    Add,
    /// The key is there.
    Replace,
    /// The key is there; the value goes after the one there, whose flags and time stay.
    Append,
    /// The key is there; the value goes before the one there, whose flags and time stay.
    Prepend,
}

/// An object to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'b> {
    /// What it depends on.
    pub mode: StoreMode,
    /// Where.
    pub key: &'b [u8],
    /// A number that the client keeps with the value.
    pub flags: u32,
    /// When it expires.
    pub exptime: i64,
    /// With `cas`, store only over a value that has this number.
    pub cas: Option<u64>,
    /// Whether to answer nothing.
    pub noreply: bool,
    /// What.
    pub value: &'b [u8],
}

/// Up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Up; after the largest number of 64 bits comes 0.
    Increment,
    /// Down, not below 0.
    Decrement,
}

/// A number to count up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arith<'b> {
    /// Up or down.
    pub direction: Direction,
    /// Where the number is.
    pub key: &'b [u8],
    /// By how much.
    pub delta: u64,
    /// Whether to answer nothing.
    pub noreply: bool,
}

/// A meta request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'b> {
    /// What to do.
    pub verb: MetaVerb,
    /// With which key.
    pub key: Key<'b>,
    /// What to store; empty unless the verb is to set.
    pub value: &'b [u8],
    /// How, and what to tell of it.
    pub flags: Flags<'b>,
}

/// What a meta request does.
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

/// A key that may have come in base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'b> {
    pub(crate) text: &'b [u8],
    pub(crate) base64: bool,
}

impl<'b> Key<'b> {
    /// The key as it came, which is how it goes back.
    pub fn text(&self) -> &'b [u8] {
        self.text
    }

    /// The key itself; in `room` where it came in base64.
    #[inline]
    pub fn bytes<'r>(&self, room: &'r mut KeyBuffer) -> &'r [u8]
    where
        'b: 'r,
    {
        if self.base64 { base64::decode(self.text, room) } else { self.text }
    }
}

/// An object that is refused for its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge<'b> {
    /// Where it was to be stored.
    pub key: Key<'b>,
    /// Whether what is stored there must go, so that nobody gets it for the newer value.
    pub remove: bool,
    /// Whether to answer nothing, instead of [`crate::memcache::Error::TooLarge`].
    pub noreply: bool,
}
