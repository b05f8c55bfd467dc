//! Removes the items of slots that another node has served since this one did.

use super::Cluster;
use super::slot_thread::SlotThread;
use nuthatch_cache::Session;
use nuthatch_cluster::slot::{SlotSet, slot_of};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The maximum pause without anything to do.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// How long items are kept that no request waits for: those of transfers that follow each other
/// are dropped in one scan of the cache, and a node that drains ends before it.
const DELAY: Duration = Duration::from_secs(5);

/// Items that are examined under one epoch guard.
const STEP: usize = 1024;

impl Cluster {
    /// Starts the thread that drops items.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started, or if no session of the cache is free.
    pub(crate) fn start_dropping(cluster: Arc<Self>) -> io::Result<SlotThread> {
        SlotThread::start(cluster, "nuthatch-slots", |cluster, mut session| {
            cluster.drop_items(&mut session);
        })
    }

    /// Drops the items of stale slots, until the server stops.
    fn drop_items(&self, session: &mut Session<'_>) {
        while let Some(slots) = self.next_stale() {
            // A request that was admitted before the slot was lost may still store an item.
            session.guard().begin_exclusive();
            if self.remove_all(session, &slots) {
                let mut transitions = self.transitions();
                transitions.stale.subtract(&slots);
                transitions.dirty.subtract(&slots);
                transitions.stale_since = Instant::now();
                let owned = slots.common(&transitions.owned);
                self.serve(&mut transitions, &owned, &self.map());
            }
        }
    }

    /// Waits until items have to be dropped, and returns their slots. Returns `None` when the
    /// server stops.
    fn next_stale(&self) -> Option<SlotSet> {
        let mut transitions = self.transitions();
        loop {
            if transitions.is_stopping {
                return None;
            }
            let drop_at = (!transitions.stale.is_empty()).then(|| transitions.stale_since + DELAY);
            if transitions.awaits_dropping() || drop_at.is_some_and(|at| at <= Instant::now()) {
                return Some(transitions.stale.clone());
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

    /// Removes all items of these slots. Returns false if the server stops meanwhile.
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
}
