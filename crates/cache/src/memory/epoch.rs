//! When memory that readers may still look at can be given out anew.
//!
//! Each session has a slot of its own, in a cache line of its own. For the length of a turn the
//! slot holds the epoch in which the turn began. What is taken out of the index gets the epoch of
//! that moment, which then ends: once no slot holds that epoch or an earlier one, nobody can see
//! it. (Fraser, "Practical lock-freedom", 2004, with one slot for a session instead of one for a
//! thread.)

use crate::error::{Error, Result};
#[cfg(loom)]
use loom::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};
#[cfg(not(loom))]
use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};

/// Sessions at a time. More than a few are too many for loom.
const SLOTS: usize = if cfg!(loom) { 2 } else { 1024 };

/// A slot of a session that is not in a turn.
const IDLE: u64 = u64::MAX;

#[repr(align(128))]
struct Slot {
    epoch: AtomicU64,
    taken: AtomicBool,
}

pub(crate) struct Epochs {
    /// Which slot's session is alone, plus one; 0 while none is.
    alone: AtomicU32,
    now: AtomicU64,
    slots: Box<[Slot]>,
    sessions: AtomicU32,
}

/// Which slot a session has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(usize);

/// While this lives, nothing is given out anew that could be seen when it began.
pub(crate) struct Pin<'a> {
    slot: &'a Slot,
}

/// While this lives, no other session is in a turn.
pub(crate) struct Alone<'a> {
    epochs: &'a Epochs,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.epochs.alone.store(0, Ordering::Release);
    }
}

impl Pin<'_> {
    /// Ends the turn before the pin goes. Nothing may be read with it afterwards.
    #[inline]
    pub(crate) fn suspend(&mut self) {
        self.slot.epoch.store(IDLE, Ordering::Release);
    }
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.suspend();
    }
}

impl Epochs {
    pub(crate) fn new() -> Self {
        let slot = |_| Slot { epoch: AtomicU64::new(IDLE), taken: AtomicBool::new(false) };
        let slots = (0..SLOTS).map(slot).collect();
        Self {
            alone: AtomicU32::new(0),
            now: AtomicU64::new(0),
            slots,
            sessions: AtomicU32::new(0),
        }
    }

    /// A slot that no other session has.
    pub(crate) fn enter(&self) -> Result<Place> {
        let free = |slot: &Slot| !slot.taken.swap(true, Ordering::AcqRel);
        let place = self.slots.iter().position(free).ok_or(Error::TooManySessions)?;
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(Place(place))
    }

    /// Sessions that are open.
    #[inline]
    pub(crate) fn sessions(&self) -> u32 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Gives the slot back.
    pub(crate) fn leave(&self, place: Place) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
        self.slots[place.0].taken.store(false, Ordering::Release);
    }

    /// Begins a turn, once no session is alone. A session has one pin at a time.
    #[inline]
    pub(crate) fn pin(&self, place: Place) -> Pin<'_> {
        let pin = Pin { slot: &self.slots[place.0] };
        self.renew(&pin);
        pin
    }

    /// Waits until no other session is in a turn, and keeps them from beginning one. The session
    /// itself is not in one meanwhile.
    pub(crate) fn wait_until_alone(&self, place: Place) -> Alone<'_> {
        let mine = place.0 as u32 + 1;
        let acquired = Ordering::SeqCst;
        while self.alone.compare_exchange(0, mine, acquired, Ordering::Relaxed).is_err() {
            yield_now();
        }
        // Whoever begins a turn writes its slot and looks at `alone` after such a fence, and we the
        // other way round: of the two, one sees what the other did.
        fence(Ordering::SeqCst);
        for (number, slot) in self.slots.iter().enumerate() {
            while number != place.0 && slot.epoch.load(Ordering::SeqCst) != IDLE {
                yield_now();
            }
        }
        Alone { epochs: self }
    }

    /// Begins another turn with the pin of one that was suspended.
    #[inline]
    pub(crate) fn renew(&self, pin: &Pin<'_>) {
        // Whoever ends an epoch looks at the slots afterwards, and we look at the index after this:
        // of the two, one sees what the other did.
        pin.slot.epoch.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.alone.load(Ordering::Relaxed) != 0 {
            self.wait_for_the_one_alone(pin);
        }
    }

    /// Steps back until no other session is alone.
    #[cold]
    fn wait_for_the_one_alone(&self, pin: &Pin<'_>) {
        let place = self.slots.iter().position(|slot| std::ptr::eq(slot, pin.slot));
        let mine = place.map_or(0, |place| place as u32 + 1);
        loop {
            let alone = self.alone.load(Ordering::SeqCst);
            if alone == 0 || alone == mine {
                pin.slot.epoch.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if self.alone.load(Ordering::SeqCst) == alone {
                    return;
                }
            }
            pin.slot.epoch.store(IDLE, Ordering::Release);
            yield_now();
        }
    }

    /// Ends the current epoch and answers it: what was taken out of the index before this call can
    /// be seen in no later one.
    pub(crate) fn end(&self) -> u64 {
        self.now.fetch_add(1, Ordering::SeqCst)
    }

    /// The epoch before which nobody is: what was taken out in an earlier one is nobody's.
    pub(crate) fn oldest(&self) -> u64 {
        fence(Ordering::SeqCst);
        let now = self.now.load(Ordering::SeqCst);
        let pinned = self.slots.iter().map(|slot| slot.epoch.load(Ordering::SeqCst));
        pinned.min().map_or(now, |oldest| oldest.min(now))
    }
}

/// Every interleaving of two sessions, tried by loom.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::Epochs;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    /// All interleavings with at most three preemptions, of two threads with a session each.
    fn model<T: Send + Sync + 'static>(
        shared: fn() -> T,
        [one, other]: [fn(&Epochs, super::Place, &T); 2],
    ) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let epochs = Arc::new(Epochs::new());
            let shared = Arc::new(shared());
            let [place, other_place] = [(); 2].map(|()| epochs.enter().expect("a slot"));
            let thread = {
                let (epochs, shared) = (Arc::clone(&epochs), Arc::clone(&shared));
                thread::spawn(move || other(&epochs, other_place, &shared))
            };
            one(&epochs, place, &shared);
            thread.join().expect("no panic");
        });
    }

    #[derive(Default)]
    struct Item {
        /// The index points nowhere.
        out: AtomicBool,
        /// Its memory is somebody else's.
        reused: AtomicBool,
    }

    #[test]
    fn loom_what_can_be_seen_is_not_given_out_anew() {
        model(
            Item::default,
            [
                |epochs, place, item| {
                    for _ in 0..2 {
                        let pin = epochs.pin(place);
                        if !item.out.load(Ordering::Acquire) {
                            assert!(!item.reused.load(Ordering::Acquire), "it can be seen");
                        }
                        drop(pin);
                    }
                },
                |epochs, _, item| {
                    item.out.store(true, Ordering::Release);
                    let ended = epochs.end();
                    if ended < epochs.oldest() {
                        item.reused.store(true, Ordering::Release);
                    }
                },
            ],
        );
    }

    /// Whoever is in a turn says so while it lasts, and whoever is alone sees that nobody does.
    fn be_alone(epochs: &Epochs, place: super::Place, in_turn: &AtomicBool) {
        let alone = epochs.wait_until_alone(place);
        assert!(!in_turn.load(Ordering::Acquire), "somebody else is in a turn");
        drop(alone);
    }

    #[test]
    fn loom_nobody_else_is_in_a_turn_of_one_alone() {
        model(
            AtomicBool::default,
            [
                |epochs, place, in_turn| {
                    let pin = epochs.pin(place);
                    in_turn.store(true, Ordering::Release);
                    in_turn.store(false, Ordering::Release);
                    drop(pin);
                },
                be_alone,
            ],
        );
    }

    #[test]
    fn loom_a_turn_that_was_suspended_waits_for_the_one_alone() {
        model(
            AtomicBool::default,
            [
                |epochs, place, in_turn| {
                    let mut pin = epochs.pin(place);
                    pin.suspend();
                    epochs.renew(&pin);
                    in_turn.store(true, Ordering::Release);
                    in_turn.store(false, Ordering::Release);
                    drop(pin);
                },
                be_alone,
            ],
        );
    }

    #[test]
    fn loom_two_that_want_to_be_alone_are_so_one_after_the_other() {
        fn both(epochs: &Epochs, place: super::Place, in_turn: &AtomicBool) {
            let alone = epochs.wait_until_alone(place);
            let pin = epochs.pin(place);
            assert!(!in_turn.swap(true, Ordering::AcqRel), "somebody else is alone");
            in_turn.store(false, Ordering::Release);
            drop(pin);
            drop(alone);
        }
        model(AtomicBool::default, [both, both]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_holds_its_epoch_and_the_later_ones() {
        let epochs = Epochs::new();
        let [one, other] = [(); 2].map(|()| epochs.enter().expect("a slot"));
        let ended = epochs.end();
        assert!(ended < epochs.oldest());
        let pin = epochs.pin(one);
        let ended = epochs.end();
        assert!(ended >= epochs.oldest());
        let later = epochs.pin(other);
        drop(pin);
        assert!(ended < epochs.oldest());
        let ended = epochs.end();
        assert!(ended >= epochs.oldest());
        drop(later);
        assert!(ended < epochs.oldest());
    }

    #[test]
    fn slots_come_back() {
        let epochs = Epochs::new();
        let all: Vec<_> = (0..SLOTS).map(|_| epochs.enter().expect("a slot")).collect();
        assert!(matches!(epochs.enter(), Err(Error::TooManySessions)));
        epochs.leave(all[7]);
        assert_eq!(epochs.enter().expect("the slot").0, 7);
    }
}
