//! The plan for a map.

use super::{SlotMap, SlotState};
use crate::node::{Node, Participation};
use crate::node_id::NodeId;
use crate::plan::plan;
use crate::slot::SLOTS;
use std::sync::Arc;

impl SlotMap {
    /// Returns the owner of each slot in the [plan](crate::plan) that all nodes follow. Active
    /// nodes have slots in proportion to their weights. A slot that moves to an active node counts
    /// as that node's. All are `None` without active nodes.
    #[must_use]
    pub fn planned(&self) -> Vec<Option<NodeId>> {
        let active: Vec<(NodeId, u32)> = (self.nodes().values())
            .map(|registered| &registered.node)
            .filter(|node| node.participation == Participation::Active)
            .map(|node| (node.id, node.weight))
            .collect();
        let place = |id: NodeId| active.binary_search_by_key(&id, |(id, _)| *id).ok();
        let mut owners: Vec<Option<u16>> = vec![None; SLOTS];
        for (range, ownership) in self.groups().iter().flat_map(|group| group.runs()) {
            let target = match ownership.state {
                SlotState::Moving(target) => Some(target),
                SlotState::Taken | SlotState::Received => None,
            };
            let owner = target.and_then(place).or_else(|| place(ownership.owner));
            owners[range.indexes()].fill(owner.map(|owner| owner as u16));
        }
        let weights: Vec<u32> = active.iter().map(|(_, weight)| *weight).collect();
        let planned = plan(&owners, &weights);
        planned.into_iter().map(|at| at.map(|at| active[usize::from(at)].0)).collect()
    }

    /// Returns the plan for the map in which these nodes take no slots.
    #[must_use]
    pub fn planned_without(&self, ids: &[NodeId]) -> Vec<Option<NodeId>> {
        let without = |map: Self, id: &NodeId| map.with_participation(*id, Participation::Waiting);
        ids.iter().fold(self.clone(), without).planned()
    }

    /// Returns the map in which a node has another participation; the same map without the node.
    #[must_use]
    pub fn with_participation(&self, id: NodeId, participation: Participation) -> Self {
        let mut map = self.clone();
        if let Some(registered) = Arc::make_mut(&mut map.nodes).get_mut(&id) {
            let registered = Arc::make_mut(registered);
            registered.node = Node { participation, ..registered.node.clone() };
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{GROUP_SLOTS, Group, Ownership, Registered};
    use crate::node::Addresses;

    #[test]
    fn a_node_that_drains_or_waits_has_no_slots_in_the_plan() {
        let mut map = SlotMap::empty();
        assert!(map.planned().iter().all(Option::is_none));
        let ids = [1, 2].map(NodeId::numbered);
        for id in ids {
            let node = Node::new(id, Addresses::default());
            map.set_node(Registered { node, lease: 1, revision: 1 });
        }
        let own = Ownership { owner: ids[0], epoch: 1, state: SlotState::Taken };
        (0..=255).for_each(|index| {
            map.set_group(Group::new(index, 1, &[Some(own); GROUP_SLOTS]));
        });
        let count = |map: &SlotMap, id| map.planned().iter().filter(|at| **at == Some(id)).count();
        assert_eq!(ids.map(|id| count(&map, id)), [8192; 2]);
        for without in [Participation::Waiting, Participation::Draining] {
            let map = map.with_participation(ids[1], without);
            assert_eq!(ids.map(|id| count(&map, id)), [SLOTS, 0]);
        }
    }
}
