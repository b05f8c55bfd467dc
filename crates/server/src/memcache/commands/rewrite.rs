//! Writes that store an item again with small changes.

use super::time::End;
pub(crate) use crate::item_bits::{STALE, WON};
use nuthatch_cache::{Item, Write};

/// Returns a write with this expiry, and with a CAS number if there is one.
pub(crate) fn write(end: End, cas: Option<u64>) -> Write<'static> {
    let write = Write::new().expiry(end.expiry());
    match cas {
        Some(cas) => write.cas(cas),
        None => write,
    }
}

/// Returns a write that stores the value, flags and protocol bits of an item again, with this
/// expiry and CAS number.
pub(crate) fn rewritten(
    item: &Item<'_>,
    end: End,
    cas: Option<u64>,
    value: &mut Vec<u8>,
) -> Write<'static> {
    value.extend_from_slice(item.value());
    write(end, cas).flags(item.flags()).protocol_bits(item.protocol_bits())
}
