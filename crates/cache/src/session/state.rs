//! The structs of sessions and guards.

use crate::cache::Cache;
use crate::index::slot::Slot;
use crate::memory::arena::Tail;
use crate::memory::epoch::{EpochGuard, Exclusive, SlotId};
use crate::memory::meta::{Queue, Segment};
use crate::records::OnDisk;
use crate::session::demotions::Demotions;
use crate::session::expiry_scan::ExpiryScan;
use crate::session::victim::Victim;
use crate::stats::Counters;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Number of expiry classes. Items are stored with others that expire at about the same time:
/// never, within minutes, within hours, later.
pub(crate) const EXPIRY_CLASSES: usize = 4;

/// What a session writes to and reclaims.
#[derive(Default)]
pub(crate) struct WriteState {
    /// The open segments, by queue and expiry class.
    pub(crate) tails: [[Option<(Segment, Tail)>; EXPIRY_CLASSES]; 2],
    /// The segment that is being reclaimed.
    pub(crate) victim: Option<Victim>,
    /// The scan for expired items in progress.
    pub(crate) expiry_scan: Option<Box<ExpiryScan>>,
    /// While [`Guard::set_all`] runs: segments to seal once all its items are in the index.
    pub(crate) deferred_seals: Option<Vec<(Segment, Tail, Queue)>>,
    /// Whether memory is short, so that every write reclaims some.
    pub(crate) memory_pressure: bool,
    /// Number of segments that should be free in addition to the target.
    pub(crate) extra_segments: u32,
    /// Where items that are chosen for demotion are collected.
    pub(crate) demotions: Option<Demotions>,
}

/// A session of one thread with a cache: begins epoch guards, and owns the segments to which the
/// thread writes. Opened by [`Cache::session`].
pub struct Session<'c> {
    pub(crate) cache: &'c Cache,
    pub(super) slot: SlotId,
    pub(crate) counters: Arc<Counters>,
    pub(crate) state: RefCell<WriteState>,
    /// Bytes of a large item that did not fit under this guard; 0 if there is none.
    pub(crate) requested_bytes: Cell<usize>,
    pub(super) now_ms: Cell<u64>,
    /// Identifier that no other session of any cache in the process has.
    pub(crate) id: u64,
    /// Number of guards begun.
    pub(super) guard_count: Cell<u64>,
    pub(super) cas: Cell<Range<u64>>,
    /// Items on disk that operations under this guard need, and whether there are any.
    pub(super) on_disk: RefCell<Vec<OnDisk>>,
    pub(super) needs_disk: Cell<bool>,
    /// Whether writes under this guard free no memory, so that no item moves.
    pub(super) keeps_items: Cell<bool>,
}

impl Session<'_> {
    /// Assigns the next identifier to the guard that begins.
    pub(super) fn count_guard(&self) {
        self.guard_count.set(self.guard_count.get() + 1);
    }

    /// Returns an identifier that only the current guard of this session has.
    #[inline]
    pub(crate) fn guard_id(&self) -> (u64, u64) {
        (self.id, self.guard_count.get())
    }

    /// Begins a guard without freeing memory.
    pub(super) fn begin(&self) -> Guard<'_> {
        self.now_ms.set(self.cache.clock.now_ms());
        self.count_guard();
        if self.needs_disk.replace(false) {
            self.on_disk.borrow_mut().clear();
        }
        self.keeps_items.set(false);
        Guard { epoch: self.cache.epochs.enter(self.slot), session: self, exclusive: None }
    }
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// An epoch guard of a session, with all operations on the cache. Items that were read under it
/// stay in memory, unchanged, until it ends. Begun by [`Session::guard`].
pub struct Guard<'s> {
    pub(crate) session: &'s Session<'s>,
    pub(crate) epoch: EpochGuard<'s>,
    /// Dropped after the epoch guard.
    pub(super) exclusive: Option<Exclusive<'s>>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.log_removed_records();
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

/// What the index must hold for a write to happen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Anything.
    Anything,
    /// The item in memory at this address, or no item.
    Address(Option<u64>),
    /// The item on disk with this place.
    Place(u64),
    /// Nothing that it can hold: the item is on disk, so that the caller must not write.
    OnDisk,
    /// No item, and the key was not changed since the cache began to restore items. The new slot
    /// has this frequency.
    Unchanged { frequency: u32 },
    /// Anything. The slot of a new key has this frequency.
    Received { frequency: u32 },
}

impl Expect {
    /// Returns whether the index holds what is expected, if it has this slot of the key.
    /// `may_restore` returns whether the key was not changed.
    #[inline]
    pub(crate) fn is_met(self, found: Option<Slot>, may_restore: impl FnOnce() -> bool) -> bool {
        match (self, found) {
            (Self::Anything | Self::Received { .. }, _) => true,
            (Self::Address(None) | Self::Unchanged { .. }, Some(_)) | (Self::OnDisk, _) => false,
            (Self::Address(expected), None) => expected.is_none(),
            (Self::Address(expected), Some(slot)) => {
                !slot.is_on_disk() && expected == Some(slot.address())
            }
            (Self::Place(place), found) => {
                found.is_some_and(|slot| slot.is_on_disk() && slot.place() == place)
            }
            (Self::Unchanged { .. }, None) => may_restore(),
        }
    }

    /// Returns the frequency of the slot of a new key.
    #[inline]
    pub(crate) fn frequency(self) -> u32 {
        match self {
            Self::Unchanged { frequency } | Self::Received { frequency } => frequency,
            Self::Anything | Self::Address(_) | Self::Place(_) | Self::OnDisk => 0,
        }
    }
}

impl Guard<'_> {
    /// Returns the cache of the session.
    #[inline]
    pub(crate) fn cache(&self) -> &Cache {
        self.session.cache
    }

    /// Returns the time at which [`Session::guard`] began this guard, in milliseconds since the
    /// Unix epoch. It decides whether an item has expired for the operations of this guard.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.session.now_ms.get()
    }

    /// Requests that `bytes` bytes are freed before the next guard, unless as many can never fit.
    pub(crate) fn request_memory(&self, bytes: usize) {
        if self.cache().segments.could_ever_fit(bytes, self.cache().reserved_for_moves()) {
            self.session.requested_bytes.set(bytes);
            self.cache().request_demotion(bytes);
        }
    }
}
