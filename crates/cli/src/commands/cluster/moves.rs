//! The plan: how many slots change their owner.

use super::state::ClusterState;
use nuthatch_cluster::map::SlotMap;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_units::grouped;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The number of slots that move, by their owner and their owner in the plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// Slots without an owner have none here.
    moves: BTreeMap<(Option<NodeId>, NodeId), usize>,
    /// Slots for which the plan has no owner: no node is active.
    pub(super) unplanned: usize,
}

impl Moves {
    /// Returns what the nodes do to follow their plan.
    pub(super) fn of(map: &SlotMap) -> Self {
        let mut moves = Self::default();
        for (slot, planned) in (0..).zip(map.planned()) {
            let owner = map.ownership(slot).map(|ownership| ownership.owner);
            match planned {
                None => moves.unplanned += 1,
                Some(planned) if owner != Some(planned) => {
                    *moves.moves.entry((owner, planned)).or_default() += 1;
                }
                Some(_) => {}
            }
        }
        moves
    }

    /// Returns the number of slots that change their owner.
    pub(super) fn total(&self) -> usize {
        self.moves.values().sum()
    }

    /// Returns a line for each pair of nodes.
    pub(super) fn lines(&self, state: &ClusterState) -> Vec<String> {
        let lines = self.moves.iter().map(|((from, to), slots)| {
            let from = from.map_or_else(|| "no owner".to_owned(), |id| state.name(id));
            let slots = grouped(*slots as u64);
            format!("  {slots:>6} slots from {from} to {}", state.name(*to))
        });
        lines.collect()
    }

    /// Returns the moves as JSON.
    pub(super) fn json(&self) -> Value {
        let moves = self.moves.iter().map(|((from, to), slots)| {
            json!({ "from": from.map(|id| id.to_string()), "to": to.to_string(), "slots": slots })
        });
        moves.collect()
    }
}

/// Returns a number of slots as text.
pub(super) fn slots_text(slots: usize) -> String {
    let s = if slots == 1 { "" } else { "s" };
    format!("{} slot{s}", grouped(slots as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cluster::state::tests::state;
    use nuthatch_cluster::node::Participation;

    #[test]
    fn a_plan_names_both_nodes_of_each_move() {
        let state = state();
        let moves = Moves::of(&state.map);
        assert_eq!(moves.total(), 8_192);
        let expected = [
            "   8,128 slots from 00000001 (cache-1:6379) to 00000002 (cache-2:6379)",
            "      64 slots from 00000004 (cache-4:6379) to 00000002 (cache-2:6379)",
        ];
        assert_eq!(moves.lines(&state), expected);
        assert_eq!(moves.json()[1]["slots"], 64);
        let waiting = state.map.with_participation(NodeId::numbered(1), Participation::Waiting);
        assert_eq!(Moves::of(&waiting).total(), 16_384);
        let none = waiting.with_participation(NodeId::numbered(2), Participation::Waiting);
        assert_eq!((Moves::of(&none).total(), Moves::of(&none).unplanned), (0, 16_384));
    }
}
