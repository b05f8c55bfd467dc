//! How an item is stored once more, changed a little.

use super::time::End;
use nuthatch_cache::{Item, Write};

/// A mark: the value is out of date, and served until there is a new one.
pub(crate) const STALE: u8 = 1;
/// A mark: a client was told that it is the one to renew the item.
pub(crate) const WON: u8 = 2;

/// How to store this, with a number for compare-and-set if it is to have one.
pub(crate) fn write(end: End, cas: Option<u64>) -> Write<'static> {
    let write = Write::new().expiry(end.expiry());
    match cas {
        Some(cas) => write.cas(cas),
        None => write,
    }
}

/// How to store an item once more, value, flags and marks, with this end and number.
pub(crate) fn again(
    item: &Item<'_>,
    end: End,
    cas: Option<u64>,
    value: &mut Vec<u8>,
) -> Write<'static> {
    value.extend_from_slice(item.value());
    write(end, cas).flags(item.flags()).protocol_bits(item.protocol_bits())
}
