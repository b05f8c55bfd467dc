//! Value references: locations of values, without a borrow, for code that collects several values
//! and reads them before the guard ends.

use crate::item::Item;
use crate::session::state::Guard;

/// The location of the value of an item that was read under a guard. Created by
/// [`Guard::value_ref`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRef {
    guard: (u64, u64),
    address: u64,
    len: u32,
}

impl ValueRef {
    /// Returns the length of the value in bytes.
    #[inline]
    pub fn value_len(&self) -> usize {
        self.len as usize
    }
}

impl Guard<'_> {
    /// Returns the location of the value of an item. Unlike the item, it borrows nothing. It is
    /// valid until the guard ends or is [renewed](Self::renew).
    ///
    /// # Panics
    ///
    /// If the item was read by another session or through an item reference, as this guard might
    /// not keep it in memory.
    #[inline]
    pub fn value_ref(&self, item: &Item<'_>) -> ValueRef {
        // While the item exists, its session is under the guard that the item was read under.
        assert_eq!(item.session, self.session.id, "an item of this guard");
        let value = item.value();
        let address = self.cache().arena.address_of(value).expect("an item of this cache");
        ValueRef { guard: self.session.guard_id(), address, len: value.len() as u32 }
    }

    /// Returns the value at a location, or `None` if the location is from another guard, or from
    /// this one before it was renewed.
    #[inline]
    pub fn value_at(&self, value_ref: &ValueRef) -> Option<&[u8]> {
        let same = value_ref.guard == self.session.guard_id();
        same.then(|| self.cache().arena.read(&self.epoch, value_ref.address, value_ref.value_len()))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cache, Options, Write};
    use std::sync::Arc;

    /// The item may have been removed before this guard began, which then does not keep it.
    #[test]
    #[should_panic(expected = "an item of this guard")]
    fn an_item_of_another_session_has_no_value_ref() {
        let cache = Cache::new(Options::new().memory(16 << 20)).expect("a cache");
        let [mut one, mut other] = [(); 2].map(|()| cache.session().expect("room"));
        let guard = one.guard();
        guard.set(b"key", b"value", &Write::new()).map(drop).expect("room");
        let item = guard.get(b"key").expect("there");
        other.guard().value_ref(&item);
    }

    #[test]
    #[should_panic(expected = "an item of this guard")]
    fn an_item_of_an_item_ref_has_no_value_ref() {
        let cache = Arc::new(Cache::new(Options::new().memory(16 << 20)).expect("a cache"));
        let mut session = cache.session().expect("room");
        let guard = session.guard();
        guard.set(b"key", b"value", &Write::new()).map(drop).expect("room");
        let item_ref = guard.item_ref(&cache, &guard.get(b"key").expect("there"));
        guard.value_ref(&item_ref.item());
    }

    #[test]
    fn a_value_ref_is_invalid_under_another_guard() {
        let cache = || Cache::new(Options::new().memory(16 << 20)).expect("a cache");
        let (one, other) = (cache(), cache());
        let session = |of| Cache::session(of).expect("room");
        let (mut session, mut second, mut third) = (session(&one), session(&one), session(&other));
        let mut guard = session.guard();
        let stored = guard.set(b"key", b"value", &Write::new());
        stored.map(drop).expect("room");
        let value_ref = guard.value_ref(&guard.get(b"key").expect("there"));
        assert_eq!(value_ref.value_len(), 5);
        assert_eq!(guard.value_at(&value_ref), Some(&b"value"[..]));
        assert_eq!(second.guard().value_at(&value_ref), None);
        assert_eq!(third.guard().value_at(&value_ref), None);
        guard.renew();
        assert_eq!(guard.value_at(&value_ref), None);
        let value_ref = guard.value_ref(&guard.get(b"key").expect("there"));
        guard.begin_exclusive();
        assert_eq!(guard.value_at(&value_ref), None);
        let value_ref = guard.value_ref(&guard.get(b"key").expect("there"));
        guard.end_exclusive();
        assert_eq!(guard.value_at(&value_ref), Some(&b"value"[..]));
        drop(guard);
        assert_eq!(session.guard().value_at(&value_ref), None);
    }
}
