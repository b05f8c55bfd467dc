//! The nodes of the cluster, for the live page.

use super::Cluster;
use nuthatch_cluster::map::SlotCounts;
use nuthatch_cluster::node::Node;
use nuthatch_cluster::node_id::NodeId;

/// A node of the cluster.
pub(crate) struct MemberRow {
    pub(crate) id: NodeId,
    /// The address for clients.
    pub(crate) address: String,
    /// `active`, `waiting`, `draining`, `stopped`, or `failed` without a lease.
    pub(crate) state: &'static str,
    pub(crate) weight: u32,
    pub(crate) slots: SlotCounts,
    /// Whether it is this node.
    pub(crate) is_self: bool,
}

impl Cluster {
    /// Returns the nodes, this one first and then those without a lease.
    pub(crate) fn members(&self) -> Vec<MemberRow> {
        let map = self.map();
        let counts = map.slot_counts();
        let row = |node: &Node, state| MemberRow {
            id: node.id,
            address: node.addresses.client.clone(),
            state,
            weight: node.weight,
            slots: counts.get(&node.id).copied().unwrap_or_default(),
            is_self: node.id == self.id,
        };
        let mut rows: Vec<_> = self.departed().values().map(|node| row(node, "failed")).collect();
        let present = map.nodes().values().map(|found| &found.node);
        rows.extend(present.map(|node| row(node, node.state())));
        rows.sort_by_key(|row| !row.is_self);
        rows
    }
}
