//! Transactions that change the ownership of slots.
//!
//! Each compares the revision of every group that it writes, and that this node's key is bound to
//! its current lease. So two transactions that were computed from one state never both succeed, and
//! a node without a lease changes nothing.

use crate::keys::Keys;
use crate::map::{GROUP_SLOTS, Group, Ownership, SlotMap, SlotState, Slots};
use crate::node_id::NodeId;
use crate::request::{Compare, Txn, Write};
use crate::slot::SlotSet;
use std::collections::{BTreeMap, BTreeSet};

/// Groups in a transaction. etcd permits 128 operations by default.
const MAX_GROUPS: usize = 32;
/// Former owners, and new owners, whose keys a transaction compares.
const MAX_COMPARED_NODES: usize = 40;

/// A transaction, and the groups as it writes them.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) txn: Txn,
    /// The slots that it changes.
    pub(super) slots: SlotSet,
    groups: Vec<(u8, Slots)>,
}

impl Change {
    /// Returns the groups at the revision of the transaction.
    pub(super) fn groups(&self, revision: i64) -> impl Iterator<Item = Group> + '_ {
        self.groups.iter().map(move |(index, slots)| Group::new(*index, revision, slots))
    }
}

/// A node that changes slots, and the state from which it does.
#[derive(Clone, Copy)]
pub(super) struct Author<'a> {
    pub(super) keys: &'a Keys,
    pub(super) map: &'a SlotMap,
    pub(super) id: NodeId,
    pub(super) lease: i64,
}

impl Author<'_> {
    /// Assigns slots that have no owner, or whose owner has no lease, to nodes. The transaction
    /// compares that the keys of former owners do not exist, and that the new owners have leases.
    /// Assigns a part of the slots if they are many.
    pub(super) fn claim(&self, claims: &BTreeMap<u16, NodeId>) -> Option<Change> {
        let mut former = BTreeSet::new();
        let mut takers = BTreeSet::new();
        let slots = claims.keys().copied().collect();
        let change = self.edit(&slots, |slot, before| {
            let taker = *claims.get(&slot)?;
            if before.is_some_and(|before| self.map.node(before.owner).is_some()) {
                return None;
            }
            let former_owner = before.map(|before| before.owner);
            let has_room = |nodes: &BTreeSet<NodeId>, id: &NodeId| {
                nodes.len() < MAX_COMPARED_NODES || nodes.contains(id)
            };
            if !former_owner.is_none_or(|id| has_room(&former, &id)) || !has_room(&takers, &taker) {
                return None;
            }
            former.extend(former_owner);
            takers.insert(taker);
            Some(self.owned_by(taker, before, SlotState::Taken))
        });
        let mut change = change?;
        takers.remove(&self.id);
        let absent = former.into_iter().map(|id| Compare::Absent(self.keys.node(id)));
        change.txn.compares.extend(absent);
        takers.into_iter().try_fold(change, |change, taker| self.with_target(change, taker))
    }

    /// Begins to move own slots to a node.
    pub(super) fn begin_move(&self, slots: &SlotSet, target: NodeId) -> Option<Change> {
        let change = self.edit(slots, |_, before| {
            let own = before.filter(|before| before.owner == self.id)?;
            Some(Ownership { state: SlotState::Moving(target), ..own })
        });
        self.with_target(change?, target)
    }

    /// Makes the node to which own slots move their owner.
    pub(super) fn finish_move(&self, slots: &SlotSet, target: NodeId) -> Option<Change> {
        let change = self.edit(slots, |_, before| {
            let own = before.filter(|before| before.owner == self.id)?;
            let is_moving = own.state == SlotState::Moving(target);
            is_moving.then(|| self.owned_by(target, Some(own), SlotState::Received))
        });
        self.with_target(change?, target)
    }

    /// Ends moves of own slots without effect.
    pub(super) fn abort_move(&self, slots: &SlotSet) -> Option<Change> {
        self.edit(slots, |_, before| {
            let own = before.filter(|before| before.owner == self.id)?;
            let is_moving = matches!(own.state, SlotState::Moving(_));
            is_moving.then_some(Ownership { state: SlotState::Taken, ..own })
        })
    }

    /// Returns the ownership of a slot with another owner. The epoch is above all epochs before,
    /// even if the keys of the cluster were deleted: it is a revision of etcd.
    fn owned_by(&self, owner: NodeId, before: Option<Ownership>, state: SlotState) -> Ownership {
        let revision = u64::try_from(self.map.revision()).unwrap_or_default();
        let epoch = before.map_or(0, |before| before.epoch).max(revision) + 1;
        Ownership { owner, epoch, state }
    }

    /// Adds the condition that the target still has the lease that this node knows.
    fn with_target(&self, mut change: Change, target: NodeId) -> Option<Change> {
        let lease = self.map.node(target)?.lease;
        change.txn.compares.push(Compare::Lease(self.keys.node(target), lease));
        Some(change)
    }

    /// Returns the transaction that sets slots to what `set` returns for their ownership; slots for
    /// which it returns `None` stay. `None` if no slot changes.
    fn edit(
        &self,
        slots: &SlotSet,
        mut set: impl FnMut(u16, Option<Ownership>) -> Option<Ownership>,
    ) -> Option<Change> {
        let mut groups: BTreeMap<u8, Slots> = BTreeMap::new();
        let mut changed = SlotSet::new();
        for slot in slots.iter() {
            let group = self.map.group_of(slot);
            let is_full = groups.len() == MAX_GROUPS && !groups.contains_key(&group.index());
            if is_full {
                break;
            }
            let Some(after) = set(slot, group.ownership(slot).copied()) else { continue };
            let edited = groups.entry(group.index()).or_insert_with(|| group.slots());
            edited[usize::from(slot) % GROUP_SLOTS] = Some(after);
            changed.insert(slot);
        }
        if changed.is_empty() {
            return None;
        }
        let mut txn = Txn::default();
        txn.compares.push(Compare::Lease(self.keys.node(self.id), self.lease));
        for (index, slots) in &groups {
            let revision = self.map.groups()[usize::from(*index)].compared_revision();
            let key = self.keys.group(*index);
            txn.compares.push(Compare::Revision(key.clone(), revision));
            let value = Group::new(*index, 0, slots).encode();
            txn.writes.push(Write::Put { key, value, lease: 0 });
        }
        Some(Change { txn, slots: changed, groups: groups.into_iter().collect() })
    }
}
