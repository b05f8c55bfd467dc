//! The number of slots of each node.

use super::{SlotMap, SlotState};
use crate::node_id::NodeId;
use std::collections::BTreeMap;

/// The number of slots of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// Slots that it owns.
    pub owned: usize,
    /// Slots of these that move to other nodes.
    pub moving_out: usize,
    /// Slots of other nodes that move to it.
    pub moving_in: usize,
}

impl SlotMap {
    /// Returns the slots of each node that owns some or to which some move, whether its lease
    /// exists or not.
    #[must_use]
    pub fn slot_counts(&self) -> BTreeMap<NodeId, SlotCounts> {
        let mut counts: BTreeMap<NodeId, SlotCounts> = BTreeMap::new();
        for (range, ownership) in self.groups().iter().flat_map(|group| group.runs()) {
            let slots = range.indexes().count();
            let owner = counts.entry(ownership.owner).or_default();
            owner.owned += slots;
            if let SlotState::Moving(target) = ownership.state {
                owner.moving_out += slots;
                counts.entry(target).or_default().moving_in += slots;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{GROUP_SLOTS, Group, Ownership};

    #[test]
    fn moving_slots_count_for_both_nodes() {
        let [one, other] = [1, 2].map(NodeId::numbered);
        let own = Ownership { owner: one, epoch: 1, state: SlotState::Taken };
        let mut slots = [Some(own); GROUP_SLOTS];
        slots[3..10].fill(Some(Ownership { state: SlotState::Moving(other), ..own }));
        let mut map = SlotMap::empty();
        map.set_group(Group::new(7, 1, &slots));
        let counts = map.slot_counts();
        assert_eq!(counts[&one], SlotCounts { owned: 64, moving_out: 7, moving_in: 0 });
        assert_eq!(counts[&other], SlotCounts { owned: 0, moving_out: 0, moving_in: 7 });
    }
}
