//! Removes the items of slots that another node has served since this one did, and stores which
//! slots outlive the process.

use super::Cluster;
use super::kept::{ItemFiles, KeptSlots};
use super::slot_thread::SlotThread;
use super::transitions::Transitions;
use nuthatch_cache::Session;
use nuthatch_cluster::slot::{SlotSet, slot_of};
use std::cell::Cell;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The maximum pause without anything to do.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// The delay before items are dropped that no request waits for. One scan of the cache then drops
/// the items of several transfers, and a node that drains ends before it.
const DELAY: Duration = Duration::from_secs(5);

/// Items that are examined under one epoch guard.
const STEP: usize = 1024;

/// What the thread does next.
enum Task {
    /// Drops the items of these slots.
    Drop(SlotSet),
    /// Removes invalid records of these slots from the index. Their items were dropped already.
    Forget(SlotSet),
    /// Stores the slots that outlive the process.
    Keep(KeptSlots),
}

impl Cluster {
    /// Starts the thread that drops items.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started, or if no session of the cache is free.
    pub(crate) fn start_dropping(cluster: Arc<Self>) -> io::Result<SlotThread> {
        SlotThread::start(cluster, "nuthatch-slots", |cluster, mut session| {
            while let Some(task) = cluster.next_task() {
                match task {
                    Task::Drop(slots) => cluster.drop_items(&mut session, &slots),
                    Task::Forget(slots) => cluster.forget_records(&mut session, &slots),
                    Task::Keep(slots) => cluster.keep(&slots),
                }
            }
            if let Some(slots) = cluster.take_kept(&mut cluster.transitions()) {
                cluster.keep(&slots);
            }
            cluster.suspend_stale();
        })
    }

    /// Drops the items of stale slots, in memory and on disk.
    fn drop_items(&self, session: &mut Session<'_>, slots: &SlotSet) {
        // From now on, no item of the slots is moved between memory and disk.
        self.kept.files.suspend(slots);
        // A request that was admitted before the slot was lost may still store an item.
        session.guard().begin_exclusive();
        if !self.remove_all(session, slots) {
            return;
        }
        self.kept.files.resume(slots);
        let mut transitions = self.transitions();
        transitions.stale.subtract(slots);
        transitions.dirty.subtract(slots);
        if matches!(self.kept.files, ItemFiles::Disk(_)) {
            transitions.invalid.add(slots);
        }
        transitions.stale_since = Instant::now();
        let owned = slots.common(&transitions.owned);
        self.serve(&mut transitions, &owned, &self.map());
    }

    /// Waits until something has to be done. Returns `None` when the server stops.
    fn next_task(&self) -> Option<Task> {
        let mut transitions = self.transitions();
        loop {
            if transitions.is_stopping {
                return None;
            }
            let drop_at = (!transitions.stale.is_empty()).then(|| transitions.stale_since + DELAY);
            if transitions.awaits_dropping() || drop_at.is_some_and(|at| at <= Instant::now()) {
                return Some(Task::Drop(transitions.stale.clone()));
            }
            if let Some(slots) = self.take_kept(&mut transitions) {
                return Some(Task::Keep(slots));
            }
            if !transitions.invalid.is_empty() {
                return Some(Task::Forget(transitions.invalid.clone()));
            }
            let end = transitions.awaited.next_end();
            let end = drop_at.into_iter().chain(end).min();
            let pause = end.map_or(MAX_PAUSE, |end| end.duration_since(Instant::now()));
            let wait = self.changed.wait_timeout(transitions, pause);
            transitions = wait.unwrap_or_else(PoisonError::into_inner).0;
            if end.is_some_and(|end| end <= Instant::now()) {
                self.update(&mut transitions);
            }
        }
    }

    /// Removes all items in memory of these slots. Returns false if the server stops meanwhile.
    fn remove_all(&self, session: &mut Session<'_>, slots: &SlotSet) -> bool {
        let mut cursor = 0;
        loop {
            let guard = session.guard();
            let mut removed = 0;
            cursor = guard.scan_in_memory(cursor, STEP, |item| {
                if slots.contains(slot_of(item.key())) {
                    removed += u64::from(guard.remove(item.key()));
                }
            });
            self.dropped_items.fetch_add(removed, Ordering::Relaxed);
            drop(guard);
            if cursor == 0 {
                return true;
            }
            if self.transitions().is_stopping {
                return false;
            }
        }
    }

    /// Removes the items of invalid records of slots from the index, unless something else has to
    /// be done first.
    fn forget_records(&self, session: &mut Session<'_>, slots: &SlotSet) {
        let ItemFiles::Disk(disk) = &self.kept.files else { return };
        let is_cut = Cell::new(false);
        let is_wanted = || {
            is_cut.set(!self.transitions().is_idle());
            !is_cut.get()
        };
        let forgotten = disk.forget_invalid(session, &|slot| slots.contains(slot), &is_wanted);
        self.dropped_items.fetch_add(forgotten, Ordering::Relaxed);
        // Otherwise it begins anew.
        if !is_cut.get() {
            self.transitions().invalid.subtract(slots);
        }
    }
}

impl Transitions {
    /// Returns whether nothing waits for items to be dropped.
    fn is_idle(&self) -> bool {
        !self.is_stopping && !self.awaits_dropping()
    }
}
