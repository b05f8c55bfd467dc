//! Options and outcomes of writes.

use crate::item::Metadata;

/// When an item expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// At this time, in milliseconds since the Unix epoch: the item has expired if the time of a
    /// guard is not earlier.
    At(u64),
    /// This many milliseconds from the time of the guard.
    In(u64),
    /// At the time at which the replaced item would expire; never if there is no such item.
    Keep,
}

/// What must hold for a write to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition<'a> {
    /// Nothing: the value is always stored.
    #[default]
    Always,
    /// The key has no item.
    Absent,
    /// The key has an item.
    Present,
    /// The key has an item with this number for compare-and-set.
    Cas(u64),
    /// The key has an item with this value.
    Value(&'a [u8]),
}

/// How to store a value: its expiry, a condition, and metadata.
#[derive(Clone, Copy, Debug, Default)]
pub struct Write<'a> {
    pub(crate) expiry: Expiry,
    pub(crate) condition: Condition<'a>,
    pub(crate) flags: u32,
    pub(crate) cas: Option<u64>,
    pub(crate) protocol_bits: u8,
    pub(crate) is_compressed: bool,
}

impl<'a> Write<'a> {
    /// Returns the defaults: no condition, no expiry, flags 0, no number for compare-and-set.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets when the item expires.
    #[inline]
    #[must_use]
    pub fn expiry(self, expiry: Expiry) -> Self {
        Self { expiry, ..self }
    }

    /// Sets the item to expire this many milliseconds from the time of the guard.
    #[inline]
    #[must_use]
    pub fn expires_in_ms(self, ms: u64) -> Self {
        self.expiry(Expiry::In(ms))
    }

    /// Sets what must hold for the write to happen.
    #[inline]
    #[must_use]
    pub fn condition(self, condition: Condition<'a>) -> Self {
        Self { condition, ..self }
    }

    /// Sets the client's flags.
    #[inline]
    #[must_use]
    pub fn flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }

    /// Sets the item's number for compare-and-set, from
    /// [`Guard::new_cas`](crate::Guard::new_cas). By default the item has none until
    /// [`Guard::get_with_cas`](crate::Guard::get_with_cas) assigns one.
    #[inline]
    #[must_use]
    pub fn cas(self, cas: u64) -> Self {
        Self { cas: Some(cas), ..self }
    }

    /// Sets the two bits of state that the protocol keeps with the item. Higher bits are ignored.
    #[inline]
    #[must_use]
    pub fn protocol_bits(self, bits: u8) -> Self {
        Self { protocol_bits: bits & 3, ..self }
    }

    /// Sets whether the value is marked as compressed: see
    /// [`Item::is_compressed`](crate::Item::is_compressed). The cache itself neither compresses nor
    /// decompresses values. The mark takes 7 bytes of a short item.
    #[inline]
    #[must_use]
    pub fn compressed(self, is_compressed: bool) -> Self {
        Self { is_compressed, ..self }
    }

    /// Returns the metadata of the item, at a time `now_ms`. `kept` is the expiry of the item that
    /// it replaces.
    #[inline]
    pub(crate) fn metadata(&self, now_ms: u64, kept: Option<u64>) -> Metadata {
        let expires_ms = match self.expiry {
            Expiry::Never => None,
            Expiry::At(ms) => Some(ms),
            Expiry::In(ms) => Some(now_ms.saturating_add(ms)),
            Expiry::Keep => kept,
        };
        // The maximum expiry is that of six bytes, in the year 10,889.
        let expires_ms = expires_ms.map(|ms| ms.min((1 << 48) - 1));
        let Self { flags, cas, protocol_bits, is_compressed, .. } = *self;
        Metadata { expires_ms, flags, cas, protocol_bits, record: None, is_compressed }
    }
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a write may not have happened"]
pub enum Outcome {
    /// The value was stored.
    Stored,
    /// Nothing was stored: the key has an item, but must have none, or another number or value.
    Exists,
    /// Nothing was stored: the key has no item, but the condition requires one.
    Missing,
}
