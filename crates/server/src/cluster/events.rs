//! What the membership decides, applied to the state that all threads share.

use super::Cluster;
use super::transitions::common;
use crate::log;
use nuthatch_cluster::map::SlotMap;
use nuthatch_cluster::member::{Event, Items, Member};
use nuthatch_cluster::slot::SlotSet;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// The end of a transfer, for the membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveReport {
    /// The items are at the target, and the slots are sealed.
    Finished {
        /// The number of the transfer.
        transfer: u64,
    },
    /// The transfer has failed, and the slots are served on.
    Failed {
        /// The number of the transfer.
        transfer: u64,
    },
}

impl Cluster {
    /// Handles an event of the membership. Returns what the program has to report to it.
    ///
    /// A slot that another node has served is served when its items have been dropped, by a thread
    /// of the server. Until then it is refused as a slot without an owner.
    pub fn handle(&self, member: &Member, event: Event) -> Option<MoveReport> {
        match event {
            Event::Gained { slots, items } => self.gain(&slots, items),
            Event::Lost { slots } => self.lose(&slots),
            // Items are not sent yet, so those of these slots are dropped when they are gained.
            Event::Incoming { .. } | Event::Drained => {}
            Event::MoveOut { transfer, slots, .. } => {
                if self.seal(transfer, slots) {
                    return Some(MoveReport::Finished { transfer });
                }
                self.cancel(transfer, member.serving());
                return Some(MoveReport::Failed { transfer });
            }
            Event::MoveCancelled { transfer } => self.cancel(transfer, member.serving()),
            Event::MapChanged(map) => self.replace_map(map),
            Event::Problem(problem) => log::cluster_problem(&problem),
        }
        None
    }

    fn gain(&self, slots: &SlotSet, items: Items) {
        let mut transitions = self.transitions();
        if items != Items::Kept {
            let stale = common(slots, &transitions.dirty);
            transitions.stale.add(&stale);
        }
        transitions.owned.add(slots);
        let mut ready = slots.clone();
        ready.subtract(&transitions.stale);
        transitions.dirty.add(&ready);
        self.served.add(&ready);
        self.changed.notify_all();
    }

    fn lose(&self, slots: &SlotSet) {
        let mut transitions = self.transitions();
        let stale = common(slots, &transitions.dirty);
        transitions.stale.add(&stale);
        transitions.owned.subtract(slots);
        transitions.moving.values_mut().for_each(|moving| moving.subtract(slots));
        transitions.moving.retain(|_, moving| !moving.is_empty());
        self.served.remove(slots);
        self.losses.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    /// Stops to serve slots that move to another node, and waits until no request for them is in
    /// progress. Returns false if that cannot be determined.
    fn seal(&self, transfer: u64, slots: SlotSet) -> bool {
        let mut transitions = self.transitions();
        transitions.owned.subtract(&slots);
        self.served.remove(&slots);
        transitions.moving.insert(transfer, slots);
        drop(transitions);
        self.wait_for_requests()
    }

    /// Serves slots again that have not moved. Those that the membership has sealed are not in
    /// `serving`: it reports them again.
    fn cancel(&self, transfer: u64, serving: &SlotSet) {
        let slots = self.transitions().moving.remove(&transfer);
        if let Some(slots) = slots {
            self.gain(&common(&slots, serving), Items::Kept);
        }
    }

    fn replace_map(&self, map: Arc<SlotMap>) {
        let before = self.map();
        let mut departed = self.departed();
        for (id, registered) in before.nodes() {
            departed.insert(*id, registered.node.clone());
        }
        let runs = map.groups().iter().flat_map(|group| group.runs());
        let owners: BTreeSet<_> = runs.map(|(_, ownership)| ownership.owner).collect();
        departed.retain(|id, _| map.node(*id).is_none() && owners.contains(id));
        drop(departed);
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = map;
    }

    /// Waits until all batches of requests that are in progress have ended. Returns false if no
    /// session of the cache is free.
    fn wait_for_requests(&self) -> bool {
        let Ok(mut session) = self.cache.session() else { return false };
        session.guard().begin_exclusive();
        true
    }
}
