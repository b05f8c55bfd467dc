//! How a value is stored that was made of another one.

use super::Call;
use super::failure::{Result, value_too_long};
use crate::state::ValueLimit;
use nuthatch_cache::{Expiry, Item, Write};

/// How to store what becomes of an item's value: the rest of the item stays.
pub(crate) fn in_place_of(item: Option<Item<'_>>) -> Write<'static> {
    Write::new().expiry(Expiry::Keep).flags(item.map_or(0, |item| item.flags()))
}

/// How to store an item once more, value and all, with another expiry.
pub(crate) fn again(item: Item<'_>, expiry: Expiry, value: &mut Vec<u8>) -> Write<'static> {
    value.extend_from_slice(item.value());
    let write = Write::new().expiry(expiry).flags(item.flags()).protocol_bits(item.protocol_bits());
    match item.cas() {
        Some(cas) => write.cas(cas),
        None => write,
    }
}

/// Checks that a value may have this length, before it is made.
///
/// # Errors
///
/// Names the limit that the length exceeds.
pub(crate) fn check_len(call: &Call<'_>, len: usize) -> Result {
    let max = call.server.cache.max_value_len();
    if len <= max {
        return Ok(());
    }
    // Beyond both limits the text is that of Redis, which knows the setting alone.
    let exceeds_setting = len as u64 > call.server.settings.max_bulk_len();
    let limit = if exceeds_setting { ValueLimit::Setting } else { ValueLimit::of_cache(max) };
    Err(value_too_long(limit))
}

/// A length, a count or a position: there is no memory for one of 64 bits.
pub(crate) fn signed(count: usize) -> i64 {
    count.cast_signed() as i64
}

impl Call<'_> {
    /// Answers a length, a count or a position.
    #[inline]
    pub(crate) fn reply_count(&mut self, count: usize) {
        self.reply().integer(signed(count));
    }
}

/// The bytes from `start` to `end`, both included, of a value of `len`: negative numbers count from
/// the end, what lies outside is cut off. Nothing if no byte is left.
pub(crate) fn clamp(start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
    let place = |at: i64| match usize::try_from(at) {
        Ok(at) => at,
        Err(_) => len.saturating_sub(at.unsigned_abs() as usize),
    };
    let (start, end) = (place(start), place(end).min(len.checked_sub(1)?));
    (start <= end).then_some((start, end))
}
