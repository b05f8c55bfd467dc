//! Writes that store an item again with small changes.

use super::time::End;
use nuthatch_cache::{Item, Write};

/// Protocol bit: the value is out of date, and is served until it is replaced.
pub(crate) const STALE: u8 = 1;
/// Protocol bit: a reply requested that its client renews the item.
pub(crate) const WON: u8 = 2;

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
