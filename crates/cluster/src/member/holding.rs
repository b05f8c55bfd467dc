//! The slots that a member serves, and the items that it holds.

use super::messages::{Event, Items};
use crate::map::{Ownership, SlotMap, SlotState};
use crate::node_id::NodeId;
use crate::slot::{SLOTS, SlotSet};
use std::collections::BTreeMap;

/// The slots of this node.
#[derive(Debug)]
pub(super) struct Holding {
    id: NodeId,
    /// For each slot the epoch in which this node served it last: its items are valid as long as
    /// the slot has this epoch. 0 without items.
    held: Vec<u64>,
    serving: SlotSet,
    /// Slots that are handed over.
    sealed: SlotSet,
    /// Slots that other nodes send, each with the epoch of its owner.
    incoming: BTreeMap<u16, (NodeId, u64)>,
}

impl Holding {
    pub(super) fn new(id: NodeId, held: &[(u16, u64)]) -> Self {
        let mut epochs = vec![0; SLOTS];
        for (slot, epoch) in held.iter().filter(|(slot, _)| usize::from(*slot) < SLOTS) {
            epochs[usize::from(*slot)] = *epoch;
        }
        let (serving, sealed) = (SlotSet::new(), SlotSet::new());
        Self { id, held: epochs, serving, sealed, incoming: BTreeMap::new() }
    }

    /// Returns slots with items, each with the epoch in which this node served it.
    pub(super) fn held(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        (0..).zip(&self.held).filter_map(|(slot, epoch)| (*epoch > 0).then_some((slot, *epoch)))
    }

    /// Returns the slots that this node serves.
    pub(super) fn serving(&self) -> &SlotSet {
        &self.serving
    }

    /// Notes that the items of slots are invalid, for example since this node is about to claim
    /// them.
    pub(super) fn forget(&mut self, slots: &SlotSet) {
        slots.iter().for_each(|slot| self.held[usize::from(slot)] = 0);
    }

    /// Stops to serve slots that move to another node, before a transaction hands them over.
    ///
    /// The outcome of that transaction may stay unknown, and it may still be executed much later.
    /// So the slots stay sealed while the map has them as moving: only another transaction ends
    /// the move, and writes a revision of the group that the first one does not expect.
    pub(super) fn seal(&mut self, slots: &SlotSet) {
        self.sealed.add(slots);
        self.serving.subtract(slots);
    }

    /// Compares the slots with the map. Returns what changed for this node, in the order in which
    /// the program has to handle it.
    pub(super) fn reconcile(&mut self, map: &SlotMap) -> Vec<Event> {
        let mut lost = SlotSet::new();
        let mut gained: BTreeMap<Items, SlotSet> = BTreeMap::new();
        let mut owned = SlotSet::new();
        let mut incoming = BTreeMap::new();
        for group in map.groups() {
            for (range, ownership) in group.runs() {
                let slots = range.slots();
                if ownership.state == SlotState::Moving(self.id) {
                    incoming.extend(slots.map(|slot| (slot, (ownership.owner, ownership.epoch))));
                } else if ownership.owner == self.id {
                    for slot in slots {
                        owned.insert(slot);
                        if let Some(items) = self.own(slot, ownership) {
                            gained.entry(items).or_default().insert(slot);
                        }
                    }
                }
            }
        }
        lost.add(&self.sealed);
        lost.add(&self.serving);
        lost.subtract(&owned);
        self.sealed.subtract(&lost);
        for slots in gained.values() {
            // Slots that this node has lost and gained since the last map.
            lost.add(&slots.iter().filter(|slot| self.serving.contains(*slot)).collect());
        }
        self.serving.subtract(&lost);
        for slots in gained.values() {
            self.serving.add(slots);
        }
        let lost = (!lost.is_empty()).then_some(Event::Lost { slots: lost });
        let mut events: Vec<Event> = lost.into_iter().collect();
        events.extend(self.begin_incoming(incoming));
        events.extend(gained.into_iter().map(|(items, slots)| Event::Gained { slots, items }));
        events
    }

    /// Notes that the map has this node as the owner of a slot. Returns what to do with its items
    /// if the node begins to serve it.
    fn own(&mut self, slot: u16, ownership: &Ownership) -> Option<Items> {
        let is_moving = matches!(ownership.state, SlotState::Moving(_));
        if is_moving && self.sealed.contains(slot) {
            return None;
        }
        self.sealed.remove(slot);
        let held = std::mem::replace(&mut self.held[usize::from(slot)], ownership.epoch);
        let is_received =
            ownership.state == SlotState::Received && self.incoming.contains_key(&slot);
        match (held == ownership.epoch, is_received) {
            (true, _) => (!self.serving.contains(slot)).then_some(Items::Kept),
            (false, true) => Some(Items::Received),
            (false, false) => Some(Items::Dropped),
        }
    }

    /// Notes the slots that other nodes send. Returns an event for each node with new ones.
    fn begin_incoming(&mut self, incoming: BTreeMap<u16, (NodeId, u64)>) -> Vec<Event> {
        let mut new: BTreeMap<NodeId, SlotSet> = BTreeMap::new();
        for (slot, (from, epoch)) in &incoming {
            if self.incoming.get(slot) != Some(&(*from, *epoch)) {
                new.entry(*from).or_default().insert(*slot);
                // Its items will be those of the transfer.
                self.held[usize::from(*slot)] = 0;
            }
        }
        self.incoming = incoming;
        new.into_iter().map(|(from, slots)| Event::Incoming { from, slots }).collect()
    }
}
