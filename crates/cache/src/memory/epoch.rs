//! Epoch-based reclamation: decides when memory that readers may still access can be reused.
//!
//! Each session has a slot in a cache line of its own. While the session holds a guard, the slot
//! contains the epoch in which the guard began. When something is removed from the index, the
//! current epoch ends and is recorded with it. Once no slot contains that epoch or an earlier one,
//! no session can access the removed item.
//!
//! Source: Fraser, "Practical lock-freedom", 2004; here with one slot for each session instead of
//! each thread.

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

/// Maximum number of sessions. Loom can explore only a few.
const MAX_SESSIONS: usize = if cfg!(loom) { 2 } else { 1024 };

/// Value of the slot of a session without a guard.
const IDLE: u64 = u64::MAX;

#[repr(align(128))]
struct Slot {
    epoch: AtomicU64,
    taken: AtomicBool,
}

pub(crate) struct Epochs {
    /// The slot, plus one, of the session with exclusive access; 0 if there is none.
    exclusive: AtomicU32,
    current: AtomicU64,
    slots: Box<[Slot]>,
    sessions: AtomicU32,
}

/// The slot of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotId(usize);

/// While this exists, no memory is reused that could be accessed when it began.
pub(crate) struct EpochGuard<'a> {
    slot: &'a Slot,
}

/// While this exists, no other session holds a guard.
pub(crate) struct Exclusive<'a> {
    epochs: &'a Epochs,
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.epochs.exclusive.store(0, Ordering::Release);
    }
}

impl EpochGuard<'_> {
    /// Ends the epoch of the guard before it is dropped. Nothing may be read with it until it is
    /// [resumed](Epochs::resume).
    #[inline]
    pub(crate) fn suspend(&mut self) {
        self.slot.epoch.store(IDLE, Ordering::Release);
    }
}

impl Drop for EpochGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.suspend();
    }
}

impl Epochs {
    pub(crate) fn new() -> Self {
        let slot = |_| Slot { epoch: AtomicU64::new(IDLE), taken: AtomicBool::new(false) };
        let slots = (0..MAX_SESSIONS).map(slot).collect();
        Self {
            exclusive: AtomicU32::new(0),
            current: AtomicU64::new(0),
            slots,
            sessions: AtomicU32::new(0),
        }
    }

    /// Assigns a free slot to a session.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySessions`] if all slots are assigned.
    pub(crate) fn register(&self) -> Result<SlotId> {
        let free = |slot: &Slot| !slot.taken.swap(true, Ordering::AcqRel);
        let id = self.slots.iter().position(free).ok_or(Error::TooManySessions)?;
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(SlotId(id))
    }

    /// Returns the number of open sessions.
    #[inline]
    pub(crate) fn sessions(&self) -> u32 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Frees the slot of a session.
    pub(crate) fn unregister(&self, id: SlotId) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
        self.slots[id.0].taken.store(false, Ordering::Release);
    }

    /// Begins a guard, after any other session has ended exclusive access. A session has one guard
    /// at a time.
    #[inline]
    pub(crate) fn enter(&self, id: SlotId) -> EpochGuard<'_> {
        let guard = EpochGuard { slot: &self.slots[id.0] };
        self.resume(&guard);
        guard
    }

    /// Waits until no other session holds a guard, and prevents other sessions from beginning one.
    /// The session's own guard must be suspended.
    pub(crate) fn wait_for_exclusive(&self, id: SlotId) -> Exclusive<'_> {
        let own = id.0 as u32 + 1;
        let acquired = Ordering::SeqCst;
        while self.exclusive.compare_exchange(0, own, acquired, Ordering::Relaxed).is_err() {
            yield_now();
        }
        // A session that begins a guard writes its slot and then reads `exclusive`, with such a
        // fence between. Here the order is the reverse. So at least one of the two sees the other's
        // write.
        fence(Ordering::SeqCst);
        for (number, slot) in self.slots.iter().enumerate() {
            while number != id.0 && slot.epoch.load(Ordering::SeqCst) != IDLE {
                yield_now();
            }
        }
        Exclusive { epochs: self }
    }

    /// Begins a new epoch for a guard that was suspended.
    #[inline]
    pub(crate) fn resume(&self, guard: &EpochGuard<'_>) {
        // A session that ends an epoch reads the slots after that, and this session reads the index
        // after its slot is written. So at least one of the two sees the other's write.
        guard.slot.epoch.store(self.current.load(Ordering::Relaxed), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.exclusive.load(Ordering::Relaxed) != 0 {
            self.wait_while_exclusive(guard);
        }
    }

    /// Withdraws from the epoch until no other session has exclusive access.
    #[cold]
    fn wait_while_exclusive(&self, guard: &EpochGuard<'_>) {
        let id = self.slots.iter().position(|slot| std::ptr::eq(slot, guard.slot));
        let own = id.map_or(0, |id| id as u32 + 1);
        loop {
            let owner = self.exclusive.load(Ordering::SeqCst);
            if owner == 0 || owner == own {
                guard.slot.epoch.store(self.current.load(Ordering::Relaxed), Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if self.exclusive.load(Ordering::SeqCst) == owner {
                    return;
                }
            }
            guard.slot.epoch.store(IDLE, Ordering::Release);
            yield_now();
        }
    }

    /// Ends the current epoch and returns it. What was removed from the index before this call is
    /// not accessible in any later epoch.
    pub(crate) fn advance(&self) -> u64 {
        self.current.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns the oldest epoch in which a session holds a guard, or else the current one. What was
    /// removed from the index in an earlier epoch is not accessible any more.
    pub(crate) fn oldest_active(&self) -> u64 {
        fence(Ordering::SeqCst);
        let now = self.current.load(Ordering::SeqCst);
        let active = self.slots.iter().map(|slot| slot.epoch.load(Ordering::SeqCst));
        active.min().map_or(now, |oldest| oldest.min(now))
    }
}

/// Explores the interleavings of two sessions with loom.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::Epochs;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    /// Explores all interleavings of two threads, with one session each and at most three
    /// preemptions.
    fn model<T: Send + Sync + 'static>(
        shared: fn() -> T,
        [one, other]: [fn(&Epochs, super::SlotId, &T); 2],
    ) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let epochs = Arc::new(Epochs::new());
            let shared = Arc::new(shared());
            let [id, other_id] = [(); 2].map(|()| epochs.register().expect("a slot"));
            let thread = {
                let (epochs, shared) = (Arc::clone(&epochs), Arc::clone(&shared));
                thread::spawn(move || other(&epochs, other_id, &shared))
            };
            one(&epochs, id, &shared);
            thread.join().expect("no panic");
        });
    }

    #[derive(Default)]
    struct Item {
        is_removed: AtomicBool,
        is_memory_reused: AtomicBool,
    }

    #[test]
    fn loom_accessible_memory_is_not_reused() {
        model(
            Item::default,
            [
                |epochs, id, item| {
                    for _ in 0..2 {
                        let guard = epochs.enter(id);
                        if !item.is_removed.load(Ordering::Acquire) {
                            let is_reused = item.is_memory_reused.load(Ordering::Acquire);
                            assert!(!is_reused, "the item is accessible");
                        }
                        drop(guard);
                    }
                },
                |epochs, _, item| {
                    item.is_removed.store(true, Ordering::Release);
                    let ended = epochs.advance();
                    if ended < epochs.oldest_active() {
                        item.is_memory_reused.store(true, Ordering::Release);
                    }
                },
            ],
        );
    }

    /// Checks under exclusive access that the other session, which sets the flag while it holds a
    /// guard, holds none.
    fn enter_exclusive(epochs: &Epochs, id: super::SlotId, is_guarded: &AtomicBool) {
        let owner = epochs.wait_for_exclusive(id);
        assert!(!is_guarded.load(Ordering::Acquire), "another session holds a guard");
        drop(owner);
    }

    #[test]
    fn loom_no_other_session_holds_a_guard_beside_an_exclusive_one() {
        model(
            AtomicBool::default,
            [
                |epochs, id, is_guarded| {
                    let guard = epochs.enter(id);
                    is_guarded.store(true, Ordering::Release);
                    is_guarded.store(false, Ordering::Release);
                    drop(guard);
                },
                enter_exclusive,
            ],
        );
    }

    #[test]
    fn loom_a_resumed_guard_waits_for_an_exclusive_one() {
        model(
            AtomicBool::default,
            [
                |epochs, id, is_guarded| {
                    let mut guard = epochs.enter(id);
                    guard.suspend();
                    epochs.resume(&guard);
                    is_guarded.store(true, Ordering::Release);
                    is_guarded.store(false, Ordering::Release);
                    drop(guard);
                },
                enter_exclusive,
            ],
        );
    }

    #[test]
    fn loom_two_exclusive_guards_follow_each_other() {
        fn both(epochs: &Epochs, id: super::SlotId, is_guarded: &AtomicBool) {
            let owner = epochs.wait_for_exclusive(id);
            let guard = epochs.enter(id);
            assert!(
                !is_guarded.swap(true, Ordering::AcqRel),
                "another session has exclusive access"
            );
            is_guarded.store(false, Ordering::Release);
            drop(guard);
            drop(owner);
        }
        model(AtomicBool::default, [both, both]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_keeps_its_epoch_and_later_ones() {
        let epochs = Epochs::new();
        let [one, other] = [(); 2].map(|()| epochs.register().expect("a slot"));
        let ended = epochs.advance();
        assert!(ended < epochs.oldest_active());
        let guard = epochs.enter(one);
        let ended = epochs.advance();
        assert!(ended >= epochs.oldest_active());
        let later = epochs.enter(other);
        drop(guard);
        assert!(ended < epochs.oldest_active());
        let ended = epochs.advance();
        assert!(ended >= epochs.oldest_active());
        drop(later);
        assert!(ended < epochs.oldest_active());
    }

    #[test]
    fn slots_are_reused() {
        let epochs = Epochs::new();
        let all: Vec<_> = (0..MAX_SESSIONS).map(|_| epochs.register().expect("a slot")).collect();
        assert!(matches!(epochs.register(), Err(Error::TooManySessions)));
        epochs.unregister(all[7]);
        assert_eq!(epochs.register().expect("the slot").0, 7);
    }
}
