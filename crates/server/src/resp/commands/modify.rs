//! Writes that derive a value from another one.

use super::Call;
use super::failure::{Result, value_too_long};
use crate::state::ValueLimit;
use nuthatch_cache::{Expiry, Item, Write};

/// Returns the write that stores a changed value of an item and keeps its flags and expiry.
pub(crate) fn in_place_of(item: Option<Item<'_>>) -> Write<'static> {
    Write::new().expiry(Expiry::Keep).flags(item.map_or(0, |item| item.flags()))
}

/// Copies the value of an item, and returns the write that stores it with another expiry.
pub(crate) fn with_expiry(item: Item<'_>, expiry: Expiry, value: &mut Vec<u8>) -> Write<'static> {
    value.extend_from_slice(item.value());
    let write = Write::new().expiry(expiry).flags(item.flags()).protocol_bits(item.protocol_bits());
    match item.cas() {
        Some(cas) => write.cas(cas),
        None => write,
    }
}

/// Checks that a value may have this length, before it is created.
///
/// # Errors
///
/// Names the limit that the length exceeds.
pub(crate) fn check_len(call: &Call<'_>, len: usize) -> Result {
    let max = call.server.cache.max_value_len();
    if len <= max {
        return Ok(());
    }
    // If the setting is exceeded, too, the error names it, as in Redis.
    let exceeds_setting = len as u64 > call.server.settings.max_bulk_len();
    let limit = if exceeds_setting { ValueLimit::Setting } else { ValueLimit::of_cache(max) };
    Err(value_too_long(limit))
}

/// Converts a length, count or position to a signed number. They never need the 64th bit.
pub(crate) fn signed(count: usize) -> i64 {
    count.cast_signed() as i64
}

impl Call<'_> {
    /// Replies with a length, count or position.
    #[inline]
    pub(crate) fn reply_count(&mut self, count: usize) {
        self.reply().integer(signed(count));
    }
}

/// Clamps an inclusive range to a value of `len` bytes. Negative numbers count from the end.
/// Returns `None` if the range is empty.
pub(crate) fn clamp(start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
    let place = |at: i64| match usize::try_from(at) {
        Ok(at) => at,
        Err(_) => len.saturating_sub(at.unsigned_abs() as usize),
    };
    let (start, end) = (place(start), place(end).min(len.checked_sub(1)?));
    (start <= end).then_some((start, end))
}
