//! The ranges of slots of each node, for clients.

use super::Cluster;
use super::endpoint::Endpoint;
use nuthatch_cluster::map::SlotMap;
use nuthatch_cluster::node::Node;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SlotRange;
use std::collections::BTreeMap;

/// A node with its slots.
#[derive(Clone, Debug)]
pub(crate) struct NodeSlots {
    pub(crate) id: NodeId,
    pub(crate) endpoint: Endpoint,
    /// The port for other nodes; 0 without one.
    pub(crate) node_port: u16,
    /// The ranges of slots that it owns, in ascending order.
    pub(crate) ranges: Vec<SlotRange>,
    /// The greatest epoch of its slots; 0 without slots.
    pub(crate) epoch: u64,
    /// Whether its lease exists, and it has not stopped.
    pub(crate) is_present: bool,
}

impl NodeSlots {
    fn new(node: &Node, is_present: bool) -> Self {
        let endpoint = Endpoint::parse(&node.addresses.client).unwrap_or_default();
        let node_port = Endpoint::parse(&node.addresses.node).map_or(0, |endpoint| endpoint.port);
        Self { id: node.id, endpoint, node_port, ranges: Vec::new(), epoch: 0, is_present }
    }

    /// Returns the number of slots.
    pub(crate) fn count(&self) -> usize {
        self.ranges.iter().map(|range| range.slots().count()).sum()
    }
}

/// The nodes whose leases exist, and those whose slots have no other owner yet, with their slots.
pub(crate) struct Coverage {
    /// The nodes, in the order of their identifiers.
    pub(crate) nodes: Vec<NodeSlots>,
    /// Slots that have an owner, whether its lease exists or not.
    pub(crate) assigned: usize,
}

impl Coverage {
    fn new(map: &SlotMap, departed: &BTreeMap<NodeId, Node>) -> Self {
        let mut nodes: BTreeMap<NodeId, NodeSlots> = BTreeMap::new();
        nodes.extend(departed.iter().map(|(id, node)| (*id, NodeSlots::new(node, false))));
        let present = map.nodes().iter();
        nodes.extend(
            present.map(|(id, found)| (*id, NodeSlots::new(&found.node, !found.node.is_stopped))),
        );
        let mut assigned = 0;
        for (range, ownership) in map.groups().iter().flat_map(|group| group.runs()) {
            assigned += range.slots().count();
            let Some(node) = nodes.get_mut(&ownership.owner) else { continue };
            node.epoch = node.epoch.max(ownership.epoch);
            match node.ranges.last_mut() {
                Some(last) if last.last + 1 == range.first => last.last = range.last,
                _ => node.ranges.push(*range),
            }
        }
        Self { nodes: nodes.into_values().collect(), assigned }
    }

    /// Returns the number of slots whose owner is present.
    pub(crate) fn covered(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_present).map(NodeSlots::count).sum()
    }

    /// Returns each range with its node, in ascending order.
    pub(crate) fn ranges(&self) -> Vec<(SlotRange, &NodeSlots)> {
        let of_node = |node: &'_ NodeSlots| node.ranges.clone();
        let mut ranges: Vec<_> = (self.nodes.iter())
            .flat_map(|node| of_node(node).into_iter().map(move |range| (range, node)))
            .collect();
        ranges.sort_by_key(|(range, _)| range.first);
        ranges
    }
}

impl Cluster {
    /// Returns the nodes and their slots.
    pub(crate) fn coverage(&self) -> Coverage {
        Coverage::new(&self.map(), &self.departed())
    }
}
