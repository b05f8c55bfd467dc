//! The cluster as one of its nodes knows it.

use super::connection::Connection;
use crate::outcome::Failure;
use nuthatch_cluster::map::{SlotCounts, SlotMap};
use nuthatch_cluster::node::Node;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SLOTS;
use std::collections::BTreeMap;

/// Digits of an identifier that are shown.
const SHORT_ID: usize = 8;

/// Prefix of the keys of nodes without a lease whose slots have no other owner yet.
const DEPARTED: &str = "departed/";

/// The cluster as one of its nodes knows it.
#[derive(Debug)]
pub(super) struct ClusterState {
    /// The node that was asked.
    pub(super) own: NodeId,
    pub(super) map: SlotMap,
    /// Nodes without a lease whose slots have no other owner yet.
    pub(super) departed: BTreeMap<NodeId, Node>,
    /// The slots of each node.
    pub(super) counts: BTreeMap<NodeId, SlotCounts>,
}

impl ClusterState {
    /// Requests the state from a node.
    pub(super) fn fetch(connection: &mut Connection) -> Result<Self, String> {
        let own = connection.request(&["CLUSTER", "MYID"])?;
        let members = connection.request(&["CLUSTER", "MEMBERS"])?;
        Self::new(own.text(), members.pairs())
    }

    fn new<'e>(
        own: &str,
        entries: impl Iterator<Item = (&'e str, &'e str)> + Clone,
    ) -> Result<Self, String> {
        let invalid = |error: &dyn std::fmt::Display| format!("CLUSTER MEMBERS: {error}");
        let own = own.parse().map_err(|error| format!("CLUSTER MYID: {error}"))?;
        let map = SlotMap::from_entries(entries.clone()).map_err(|error| invalid(&error))?;
        let mut departed = BTreeMap::new();
        for (id, value) in
            entries.filter_map(|(key, value)| key.strip_prefix(DEPARTED).map(|id| (id, value)))
        {
            let id = id.parse().map_err(|error| invalid(&error))?;
            departed.insert(id, Node::decode(id, value).map_err(|error| invalid(&error))?);
        }
        let counts = map.slot_counts();
        Ok(Self { own, map, departed, counts })
    }

    /// Returns the node with a lease that has this address or an identifier that begins so.
    pub(super) fn find(&self, name: &str) -> Result<&Node, Failure> {
        let nodes = self.map.nodes().values().map(|found| &found.node);
        let has_name = |node: &&Node| {
            node.addresses.client == name
                || (!name.is_empty() && node.id.to_string().starts_with(name))
        };
        let found: Vec<&Node> = nodes.filter(has_name).collect();
        if let [node] = found[..] {
            return Ok(node);
        }
        let departed = self.departed.values().find(has_name);
        if let Some(node) = departed.filter(|_| found.is_empty()) {
            let problem = "has no lease: other nodes take its slots by themselves within seconds";
            return Err(Failure::Error(format!("{} {problem}", described(node))));
        }
        if self.map.nodes().is_empty() {
            let problem = "the node at --server knows no nodes: it has just started, or cannot \
                           reach etcd; try again, and read its log";
            return Err(Failure::Error(problem.to_owned()));
        }
        let all = || self.map.nodes().values().map(|found| &found.node).collect();
        let known: Vec<&Node> = if found.is_empty() { all() } else { found };
        let known: Vec<String> = known.into_iter().map(described).collect();
        let expected = "NODE: expected the address or the first digits of the identifier of one of";
        Err(Failure::Error(format!("{expected} {}, found {name:?}", known.join(", "))))
    }

    /// Returns the identifier of a node, shortened, with its address.
    pub(super) fn name(&self, id: NodeId) -> String {
        let present = self.map.node(id).map(|found| &found.node);
        present.or_else(|| self.departed.get(&id)).map_or_else(|| short(id), described)
    }

    /// Returns the number of slots whose owner has a lease.
    pub(super) fn covered(&self) -> usize {
        let present = self.counts.iter().filter(|(id, _)| self.map.node(**id).is_some());
        present.map(|(_, counts)| counts.owned).sum()
    }

    /// Returns the number of slots that a node owns.
    pub(super) fn owned(&self, id: NodeId) -> usize {
        self.counts.get(&id).map_or(0, |counts| counts.owned)
    }
}

/// Returns the first digits of an identifier.
pub(super) fn short(id: NodeId) -> String {
    id.to_string().chars().take(SHORT_ID).collect()
}

/// Returns the identifier of a node, shortened, with its address.
pub(super) fn described(node: &Node) -> String {
    let (id, address) = (short(node.id), &node.addresses.client);
    if address.is_empty() { id } else { format!("{id} ({address})") }
}

/// Returns the share of this many slots.
pub(super) fn share(slots: usize) -> f64 {
    slots as f64 / SLOTS as f64
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use nuthatch_cluster::node::{Addresses, Participation};

    /// Returns the state of two active nodes, of which the first owns most slots, a waiting node,
    /// and one that is gone.
    pub(in crate::commands::cluster) fn state() -> ClusterState {
        let node = |number: u32| {
            let client = format!("cache-{number}:6379");
            let addresses = Addresses { client, ..Addresses::default() };
            let mut node = Node::new(NodeId::numbered(number), addresses);
            if number == 3 {
                node.participation = Participation::Waiting;
            }
            node.encode()
        };
        let id = |number: u32| NodeId::numbered(number).to_string();
        let mut entries: Vec<(String, String)> =
            (1..4).map(|number| (format!("nodes/{}", id(number)), node(number))).collect();
        entries.push((format!("departed/{}", id(4)), node(4)));
        for group in 0..256 {
            // The last one belongs to the node that is gone.
            let owner = if group == 255 { id(4) } else { id(1) };
            let value = format!("{}-{} {owner} 7 taken\n", group * 64, group * 64 + 63);
            entries.push((format!("slots/{group:02x}"), value));
        }
        let entries = entries.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        ClusterState::new(&id(1), entries).expect("a state")
    }

    #[test]
    fn nodes_are_found_by_address_and_by_identifier() {
        let state = state();
        for name in ["cache-2:6379", "00000002", &NodeId::numbered(2).to_string()] {
            let found = state.find(name).map_err(Failure::into_message).expect("a node");
            assert_eq!(found.id, NodeId::numbered(2), "{name}");
        }
        let error = |name| state.find(name).map_err(Failure::into_message).expect_err(name);
        assert!(error("0000").contains("one of 00000001 (cache-1:6379), 00000002 (cache-2:6379)"));
        assert!(error("").ends_with("found \"\"") && error("cache-9:1").contains("one of 0000"));
        assert!(error("cache-4:6379").contains("has no lease: other nodes take its slots"));
        assert_eq!((state.covered(), state.owned(NodeId::numbered(4))), (16_320, 64));
    }
}
