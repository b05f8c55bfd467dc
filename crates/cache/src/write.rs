//! What a write asks for, and what becomes of it.

use crate::item::Facts;

/// When an item expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Not at all.
    #[default]
    Never,
    /// At this time, in milliseconds since the beginning of 1970. Then it is gone already.
    At(u64),
    /// So many milliseconds from now.
    In(u64),
    /// When the item would that is replaced.
    Keep,
}

/// What must hold for a write to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition<'a> {
    /// Nothing.
    #[default]
    Always,
    /// The key is not there.
    Absent,
    /// The key is there.
    Present,
    /// The key is there with this number for compare-and-set.
    Cas(u64),
    /// The key is there with this value.
    Value(&'a [u8]),
}

/// How a value is to be stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Write<'a> {
    pub(crate) expiry: Expiry,
    pub(crate) condition: Condition<'a>,
    pub(crate) flags: u32,
    pub(crate) cas: Option<u64>,
    pub(crate) marks: u8,
}

impl<'a> Write<'a> {
    /// Whatever was there, without expiry.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// When the item expires.
    #[inline]
    #[must_use]
    pub fn expiry(self, expiry: Expiry) -> Self {
        Self { expiry, ..self }
    }

    /// The item expires so many milliseconds from now.
    #[inline]
    #[must_use]
    pub fn expires_in_ms(self, ms: u64) -> Self {
        self.expiry(Expiry::In(ms))
    }

    /// What must hold for the write to happen.
    #[inline]
    #[must_use]
    pub fn condition(self, condition: Condition<'a>) -> Self {
        Self { condition, ..self }
    }

    /// The client's flags.
    #[inline]
    #[must_use]
    pub fn flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }

    /// The item's number for compare-and-set. Without one the item gets none until it is asked for.
    #[inline]
    #[must_use]
    pub fn cas(self, cas: u64) -> Self {
        Self { cas: Some(cas), ..self }
    }

    /// Marks of the protocol: two bits.
    #[inline]
    #[must_use]
    pub fn marks(self, marks: u8) -> Self {
        Self { marks: marks & 3, ..self }
    }

    /// The facts of the item, which replaces one with the expiry `kept`.
    #[inline]
    pub(crate) fn facts(&self, now_ms: u64, kept: Option<u64>) -> Facts {
        let expires_ms = match self.expiry {
            Expiry::Never => None,
            Expiry::At(ms) => Some(ms),
            Expiry::In(ms) => Some(now_ms.saturating_add(ms)),
            Expiry::Keep => kept,
        };
        // A time that six bytes cannot tell is in the year 10,889, and stays there.
        let expires_ms = expires_ms.map(|ms| ms.min((1 << 48) - 1));
        Facts { expires_ms, flags: self.flags, cas: self.cas, marks: self.marks }
    }
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a write may not have happened"]
pub enum Outcome {
    /// It happened.
    Stored,
    /// The key is there, and that or its content was against the condition.
    Exists,
    /// The key is not there, against the condition.
    Missing,
}
