//! The protocol bits of an item, which clients of memcached set.

/// The value is out of date, and is served until it is replaced.
pub(crate) const STALE: u8 = 1;

/// A reply requested that its client renews the item.
pub(crate) const WON: u8 = 2;
