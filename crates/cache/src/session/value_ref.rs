//! Where values lie, told in a word: for those who collect several and read them before the turn
//! ends.

use crate::item::Item;
use crate::session::state::Turn;

/// Where the value of an item lies that was read in a turn: [`Turn::spot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    turn: (u64, u64),
    place: u64,
    len: u32,
}

impl Spot {
    /// Bytes of the value.
    #[inline]
    pub fn value_len(&self) -> usize {
        self.len as usize
    }
}

impl Turn<'_> {
    /// Where the value of an item lies. Unlike the item it borrows nothing, and tells nothing once
    /// the turn has ended.
    ///
    /// # Panics
    ///
    /// If the item was not read in this turn, but in another session's or through a lease: then
    /// this turn might not keep it.
    #[inline]
    pub fn spot(&self, item: &Item<'_>) -> Spot {
        // While there is an item, the turn that it was read in is its session's turn.
        assert_eq!(item.session, self.session.number, "an item of this turn");
        let value = item.value();
        let place = self.cache().arena.place_of(value).expect("an item of this cache");
        Spot { turn: self.session.turn_number(), place, len: value.len() as u32 }
    }

    /// The value of an item that was read in this turn; none if that was in another one.
    #[inline]
    pub fn value_at(&self, spot: &Spot) -> Option<&[u8]> {
        let same = spot.turn == self.session.turn_number();
        same.then(|| self.cache().arena.read(&self.pin, spot.place, spot.value_len()))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cache, Options, Write};
    use std::sync::Arc;

    /// It may have been gone before this turn began, which does not keep it then.
    #[test]
    #[should_panic(expected = "an item of this turn")]
    fn an_item_of_another_session_has_no_spot() {
        let cache = Cache::new(Options::new().memory(16 << 20)).expect("a cache");
        let [mut one, mut other] = [(); 2].map(|()| cache.session().expect("room"));
        let turn = one.turn();
        turn.set(b"key", b"value", &Write::new()).map(drop).expect("room");
        let item = turn.get(b"key").expect("there");
        other.turn().spot(&item);
    }

    #[test]
    #[should_panic(expected = "an item of this turn")]
    fn an_item_of_a_lease_has_no_spot() {
        let cache = Arc::new(Cache::new(Options::new().memory(16 << 20)).expect("a cache"));
        let mut session = cache.session().expect("room");
        let turn = session.turn();
        turn.set(b"key", b"value", &Write::new()).map(drop).expect("room");
        let lease = turn.lease(&cache, &turn.get(b"key").expect("there"));
        turn.spot(&lease.item());
    }

    #[test]
    fn a_spot_tells_nothing_in_another_turn() {
        let cache = || Cache::new(Options::new().memory(16 << 20)).expect("a cache");
        let (one, other) = (cache(), cache());
        let session = |of| Cache::session(of).expect("room");
        let (mut session, mut second, mut third) = (session(&one), session(&one), session(&other));
        let mut turn = session.turn();
        let stored = turn.set(b"key", b"value", &Write::new());
        stored.map(drop).expect("room");
        let spot = turn.spot(&turn.get(b"key").expect("there"));
        assert_eq!(spot.value_len(), 5);
        assert_eq!(turn.value_at(&spot), Some(&b"value"[..]));
        assert_eq!(second.turn().value_at(&spot), None);
        assert_eq!(third.turn().value_at(&spot), None);
        turn.renew();
        assert_eq!(turn.value_at(&spot), None);
        let spot = turn.spot(&turn.get(b"key").expect("there"));
        turn.be_alone();
        assert_eq!(turn.value_at(&spot), None);
        let spot = turn.spot(&turn.get(b"key").expect("there"));
        turn.be_with_others();
        assert_eq!(turn.value_at(&spot), Some(&b"value"[..]));
        drop(turn);
        assert_eq!(session.turn().value_at(&spot), None);
    }
}
