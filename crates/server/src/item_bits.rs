//! The protocol bits of an item, which clients of memcached set.

use nuthatch_cache::Item;

/// The value is out of date, and is served until it is replaced.
pub(crate) const STALE: u8 = 1;

/// A reply requested that its client renews the item.
pub(crate) const WON: u8 = 2;

/// Returns whether an item is valid without its protocol bits. A value that a client marked as
/// stale is not, and neither is the empty value that memcached's protocol stores while a client
/// computes the first value.
pub(crate) fn may_restore(item: &Item<'_>) -> bool {
    let bits = item.protocol_bits();
    bits & STALE == 0 && (bits & WON == 0 || !item.value().is_empty())
}
