//! The map of slots: which node owns which slot, at a revision of etcd.

mod entries;
mod group;
mod planned;
mod summary;

pub use group::{GROUP_SLOTS, GROUPS, Group, Ownership, SlotState, Slots};
pub use summary::SlotCounts;

use crate::node::Node;
use crate::node_id::NodeId;
use crate::slot::SlotSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node of the map with the lease that its key is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// What the node announces.
    pub node: Node,
    /// The lease in etcd. It differs after a restart of the node.
    pub lease: i64,
    /// The revision at which the node's key changed last.
    pub revision: i64,
}

/// The nodes of a cluster and the owner of each slot. Immutable: maps of consecutive revisions
/// share what did not change, so a new map costs one pointer for each of 256 groups.
#[derive(Clone, Debug)]
pub struct SlotMap {
    revision: i64,
    nodes: Arc<BTreeMap<NodeId, Arc<Registered>>>,
    groups: Box<[Arc<Group>; GROUPS]>,
}

/// What differs between two maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDifference {
    /// Slots whose owner, epoch or state differs.
    pub slots: SlotSet,
    /// Nodes that only the later map has.
    pub joined: Vec<NodeId>,
    /// Nodes that only the earlier map has.
    pub left: Vec<NodeId>,
}

impl SlotMap {
    /// Returns the map of an empty cluster.
    #[must_use]
    pub fn empty() -> Self {
        let groups = std::array::from_fn(|index| Arc::new(Group::absent(index as u8, 0)));
        Self { revision: 0, nodes: Arc::default(), groups: Box::new(groups) }
    }

    /// Returns the revision of etcd up to which changes are contained. It grows with each change.
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Returns the nodes whose leases exist, by their identifiers.
    #[must_use]
    pub fn nodes(&self) -> &BTreeMap<NodeId, Arc<Registered>> {
        &self.nodes
    }

    /// Returns a node whose lease exists.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Registered> {
        self.nodes.get(&id).map(|node| &**node)
    }

    /// Returns the groups of slots.
    #[must_use]
    pub fn groups(&self) -> &[Arc<Group>; GROUPS] {
        &self.groups
    }

    /// Returns the group of a slot.
    ///
    /// # Panics
    ///
    /// If `slot` is not below 16,384.
    #[must_use]
    pub fn group_of(&self, slot: u16) -> &Group {
        &self.groups[usize::from(slot) / GROUP_SLOTS]
    }

    /// Returns the ownership of a slot. Its owner may be a node whose lease has expired.
    ///
    /// # Panics
    ///
    /// If `slot` is not below 16,384.
    #[must_use]
    pub fn ownership(&self, slot: u16) -> Option<&Ownership> {
        self.group_of(slot).ownership(slot)
    }

    /// Returns the slots that a node owns.
    #[must_use]
    pub fn slots_of(&self, id: NodeId) -> SlotSet {
        let mut slots = SlotSet::new();
        for (range, ownership) in self.groups.iter().flat_map(|group| group.runs()) {
            if ownership.owner == id {
                range.slots().for_each(|slot| slots.insert(slot));
            }
        }
        slots
    }

    /// Returns what differs in a later map. Groups that both maps share are not compared.
    #[must_use]
    pub fn difference(&self, later: &Self) -> MapDifference {
        let mut slots = SlotSet::new();
        for (one, other) in self.groups.iter().zip(later.groups.iter()) {
            if Arc::ptr_eq(one, other) {
                continue;
            }
            let first = u16::from(one.index()) * GROUP_SLOTS as u16;
            for (slot, (one, other)) in (first..).zip(one.slots().iter().zip(&other.slots())) {
                if one != other {
                    slots.insert(slot);
                }
            }
        }
        let only = |one: &Self, other: &Self| {
            one.nodes.keys().filter(|id| !other.nodes.contains_key(id)).copied().collect()
        };
        MapDifference { slots, joined: only(later, self), left: only(self, later) }
    }

    /// Returns the bytes that the map occupies in memory, without addresses of nodes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let groups: usize = self.groups.iter().map(|group| group.memory()).sum();
        groups + size_of_val(&*self.groups) + self.nodes.len() * size_of::<Registered>()
    }

    /// Replaces a group, unless the map has a newer one. Returns whether it did.
    pub(crate) fn set_group(&mut self, group: Group) -> bool {
        let place = &mut self.groups[usize::from(group.index())];
        let is_newer = group.revision() > place.revision();
        if is_newer {
            *place = Arc::new(group);
        }
        is_newer
    }

    /// Adds or replaces a node, unless the map has a newer entry. Returns whether it did.
    pub(crate) fn set_node(&mut self, registered: Registered) -> bool {
        let id = registered.node.id;
        let is_newer = self.node(id).is_none_or(|node| node.revision < registered.revision);
        if is_newer {
            Arc::make_mut(&mut self.nodes).insert(id, Arc::new(registered));
        }
        is_newer
    }

    /// Removes a node whose key was deleted at `revision`. Returns whether the map had it.
    pub(crate) fn remove_node(&mut self, id: NodeId, revision: i64) -> bool {
        let is_older = self.node(id).is_some_and(|node| node.revision < revision);
        is_older && Arc::make_mut(&mut self.nodes).remove(&id).is_some()
    }

    /// Notes that all changes up to a revision are contained.
    pub(crate) fn set_revision(&mut self, revision: i64) {
        self.revision = self.revision.max(revision);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Addresses;

    fn registered(number: u32, revision: i64) -> Registered {
        let node = Node::new(NodeId::numbered(number), Addresses::default());
        Registered { node, lease: 1, revision }
    }

    #[test]
    fn older_changes_are_ignored() {
        let mut map = SlotMap::empty();
        assert!(map.set_node(registered(1, 5)));
        assert!(!map.set_node(registered(1, 4)));
        assert!(!map.remove_node(NodeId::numbered(1), 4));
        assert!(map.remove_node(NodeId::numbered(1), 6));
        assert!(!map.remove_node(NodeId::numbered(1), 7));
        assert!(map.set_group(Group::new(0, 3, &[None; GROUP_SLOTS])));
        assert!(!map.set_group(Group::new(0, 2, &[None; GROUP_SLOTS])));
    }

    #[test]
    fn the_difference_has_slots_and_nodes() {
        let mut one = SlotMap::empty();
        one.set_node(registered(1, 1));
        let mut other = one.clone();
        let ownership = Ownership { owner: NodeId::numbered(2), epoch: 1, state: SlotState::Taken };
        let mut slots = [None; GROUP_SLOTS];
        slots[5] = Some(ownership);
        other.set_group(Group::new(1, 2, &slots));
        other.set_node(registered(2, 3));
        other.remove_node(NodeId::numbered(1), 4);
        let difference = one.difference(&other);
        assert_eq!(difference.slots.iter().collect::<Vec<_>>(), [69]);
        assert_eq!(difference.joined, [NodeId::numbered(2)]);
        assert_eq!(difference.left, [NodeId::numbered(1)]);
        assert_eq!(other.slots_of(NodeId::numbered(2)), difference.slots);
        assert_eq!(other.ownership(69), Some(&ownership));
        assert!(Arc::ptr_eq(&one.groups()[0], &other.groups()[0]));
    }
}
