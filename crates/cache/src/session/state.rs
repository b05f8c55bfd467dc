//! Sessions and turns: what they consist of.

use crate::cache::Cache;
use crate::memory::arena::Tail;
use crate::memory::epoch::{Alone, Pin, Place};
use crate::memory::meta::{Queue, Segment};
use crate::session::expiry_scan::ExpiryScan;
use crate::session::victim::Victim;
use crate::stats::Counters;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Items lie in segments with others that expire about when they do: never, within minutes, within
/// hours, later.
pub(crate) const EXPIRY_CLASSES: usize = 4;

/// What a session writes to, for each queue and class of expiry.
#[derive(Default)]
pub(crate) struct Open {
    pub(crate) tails: [[Option<(Segment, Tail)>; EXPIRY_CLASSES]; 2],
    /// The segment that is being reclaimed.
    pub(crate) victim: Option<Victim>,
    /// The scan for expired items that is under way.
    pub(crate) expiry: Option<Box<ExpiryScan>>,
    /// Segments to seal once all items of [`Turn::set_all`] are in the index, while that runs.
    pub(crate) deferred: Option<Vec<(Segment, Tail, Queue)>>,
    /// Room is short: every write reclaims some.
    pub(crate) pressed: bool,
    /// Segments that should be free beyond those that always should.
    pub(crate) wanted: u32,
}

/// One thread's way into a cache.
pub struct Session<'c> {
    pub(crate) cache: &'c Cache,
    pub(super) place: Place,
    pub(crate) counters: Arc<Counters>,
    pub(crate) open: RefCell<Open>,
    /// Bytes of a large item for which there was no room in this turn.
    pub(crate) wanted: Cell<usize>,
    pub(super) now_ms: Cell<u64>,
    /// What no other session of any cache has.
    pub(crate) number: u64,
    /// Turns so far.
    pub(super) turns: Cell<u64>,
    pub(super) cas: Cell<Range<u64>>,
}

impl Session<'_> {
    pub(super) fn count_turn(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    /// What the turn has that is under way, and no other one of any session.
    #[inline]
    pub(crate) fn turn_number(&self) -> (u64, u64) {
        (self.number, self.turns.get())
    }

    pub(super) fn begin(&self) -> Turn<'_> {
        self.now_ms.set(self.cache.clock.now_ms());
        self.count_turn();
        Turn { pin: self.cache.epochs.pin(self.place), session: self, alone: None }
    }
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// A session's turn. Items that were read in it stay as they are until it ends.
pub struct Turn<'s> {
    pub(crate) session: &'s Session<'s>,
    pub(crate) pin: Pin<'s>,
    /// Goes after the pin.
    pub(super) alone: Option<Alone<'s>>,
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

/// What the index must hold for a write to happen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    Anything,
    /// The item at this place, or none.
    Place(Option<u64>),
}

impl Turn<'_> {
    #[inline]
    pub(crate) fn cache(&self) -> &Cache {
        self.session.cache
    }

    /// The time of this turn, in milliseconds since the beginning of 1970.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.session.now_ms.get()
    }

    /// Room for so many bytes is to be made between this turn and the next, unless that would be in
    /// vain.
    pub(crate) fn want(&self, bytes: usize) {
        if self.cache().segments.could_fit(bytes, self.cache().floor()) {
            self.session.wanted.set(bytes);
        }
    }
}
