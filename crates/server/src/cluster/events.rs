//! What the membership decides, applied to the state that all threads share.

use super::Cluster;
use super::transitions::{Outgoing, Transitions};
use crate::log;
use nuthatch_cluster::map::{SlotMap, SlotState};
use nuthatch_cluster::member::{Event, Items, Member};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SlotSet;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Cluster {
    /// Handles an event of the membership.
    ///
    /// A slot that another node has served is served when its items have been dropped, by a thread
    /// of the server. Until then its requests wait, for a limited time.
    pub fn handle(&self, member: &Member, event: Event) {
        self.transitions().data = member.data();
        match event {
            Event::Gained { slots, items } => self.gain(&slots, items, member.map()),
            Event::Lost { slots } => self.lose(&slots),
            Event::Incoming { from, slots } => self.expect_items(from, &slots),
            Event::Drained => self.note_drained(),
            Event::LeaseGranted { .. } | Event::Stopped { .. } => {}
            Event::MoveOut { transfer, slots, target } => self.move_out(transfer, slots, target),
            Event::MoveCancelled { transfer } => self.cancel(transfer, member.serving()),
            Event::MapChanged(map) => self.replace_map(&map),
            Event::Problem(problem) => log::cluster_problem(&problem),
            Event::ProblemEnded(problem) => log::cluster_problem_ended(&problem),
        }
    }

    fn gain(&self, slots: &SlotSet, items: Items, map: &SlotMap) {
        let mut transitions = self.transitions();
        let mut outdated = slots.clone();
        match items {
            Items::Kept => outdated = SlotSet::new(),
            Items::Received => outdated.subtract(&transitions.received()),
            Items::Dropped => {}
        }
        transitions.drop_items_of(&outdated);
        transitions.end_incoming(slots);
        transitions.owned.add(slots);
        transitions.is_drained = false;
        self.serve(&mut transitions, slots, map);
    }

    /// Serves slots, except those whose items are dropped first. The map has them as own ones.
    pub(super) fn serve(&self, transitions: &mut Transitions, slots: &SlotSet, map: &SlotMap) {
        let mut ready = slots.clone();
        ready.subtract(&transitions.stale);
        transitions.dirty.add(&ready);
        self.log_begin(transitions, &ready, map);
        self.served.add(&ready);
        self.note_kept_changed(transitions);
        self.update(transitions);
    }

    fn lose(&self, slots: &SlotSet) {
        let mut transitions = self.transitions();
        transitions.drop_items_of(slots);
        transitions.owned.subtract(slots);
        if let Some(outgoing) = &mut transitions.outgoing {
            outgoing.slots.subtract(slots);
        }
        transitions.outgoing.take_if(|outgoing| outgoing.slots.is_empty());
        self.note_kept_changed(&mut transitions);
        // Requests wait for the map with the owner, which follows.
        transitions.lost.add(slots);
        self.update(&mut transitions);
        self.served.remove(slots);
        self.moving.remove(slots);
        self.log_end(&mut transitions);
        self.losses.fetch_add(1, Ordering::Release);
    }

    /// Drops the items of slots that another node is about to send.
    fn expect_items(&self, from: NodeId, slots: &SlotSet) {
        let mut transitions = self.transitions();
        transitions.end_incoming(slots);
        transitions.incoming.entry(from).or_default().slots.add(slots);
        transitions.drop_items_of(slots);
        self.update(&mut transitions);
    }

    /// Lets the thread that moves items begin with a transfer.
    fn move_out(&self, transfer: u64, slots: SlotSet, target: NodeId) {
        let mut transitions = self.transitions();
        let (is_begun, is_sealed) = (false, false);
        transitions.outgoing = Some(Outgoing { transfer, target, slots, is_begun, is_sealed });
        self.changed.notify_all();
    }

    /// Serves slots again that have not moved. Those that the membership has sealed are not in
    /// `serving`: it reports them again.
    fn cancel(&self, transfer: u64, serving: &SlotSet) {
        let mut transitions = self.transitions();
        let is_it = |outgoing: &mut Outgoing| outgoing.transfer == transfer;
        let Some(outgoing) = transitions.outgoing.take_if(is_it) else { return };
        let resumed = outgoing.slots.common(serving);
        let mut sealed = outgoing.slots.clone();
        sealed.subtract(&resumed);
        transitions.owned.subtract(&sealed);
        self.serve(&mut transitions, &resumed, &self.map());
        self.moving.remove(&outgoing.slots);
        self.log_end(&mut transitions);
    }

    fn replace_map(&self, map: &Arc<SlotMap>) {
        let before = self.map();
        let mut departed = self.departed();
        for (id, registered) in before.nodes() {
            departed.insert(*id, registered.node.clone());
        }
        let runs = map.groups().iter().flat_map(|group| group.runs());
        let owners: BTreeSet<_> = runs.map(|(_, ownership)| ownership.owner).collect();
        departed.retain(|id, _| map.node(*id).is_none() && owners.contains(id));
        drop(departed);
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(map);
        self.end_outdated_transfers(map);
    }

    /// Drops the items of slots that do not move to this node any more.
    fn end_outdated_transfers(&self, map: &SlotMap) {
        let mut transitions = self.transitions();
        transitions.lost = SlotSet::new();
        let mut ended = SlotSet::new();
        for (from, incoming) in &transitions.incoming {
            let moves = |slot: u16| {
                map.ownership(slot).is_some_and(|ownership| {
                    ownership.owner == *from && ownership.state == SlotState::Moving(self.id)
                })
            };
            incoming.slots.iter().filter(|slot| !moves(*slot)).for_each(|slot| ended.insert(slot));
        }
        transitions.end_incoming(&ended);
        transitions.drop_items_of(&ended);
        transitions.drop_items_of_others(&map.slots_of(self.id));
        // The map has the epochs of slots that were gained before.
        self.note_kept_changed(&mut transitions);
        self.update(&mut transitions);
    }
}
