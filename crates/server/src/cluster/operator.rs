//! Requests of operators, which the membership executes.

use super::Cluster;
use nuthatch_cluster::member::Command;
use nuthatch_cluster::node_id::NodeId;

impl Cluster {
    /// Sets the function that passes requests of operators to the membership. Only the first one is
    /// kept.
    pub fn connect_member(&self, input: impl Fn(Command) + Send + Sync + 'static) {
        // A server has one membership.
        let _ = self.member.set(Box::new(input));
    }

    /// Returns the keys of the cluster in etcd, without their common prefix, and their values.
    /// Nodes without a lease whose slots have no other owner yet have keys that begin with
    /// `departed/`.
    pub(crate) fn entries(&self) -> Vec<(String, String)> {
        let mut entries = self.map().entries();
        let departed = self.departed();
        entries.extend(departed.iter().map(|(id, node)| (format!("departed/{id}"), node.encode())));
        entries
    }

    /// Returns whether a node has a lease.
    pub(crate) fn knows(&self, id: NodeId) -> bool {
        self.map().node(id).is_some()
    }

    /// Passes a request to the membership. Returns false if the node takes no part in the cluster
    /// yet.
    pub(crate) fn request(&self, command: Command) -> bool {
        self.member.get().map(|input| input(command)).is_some()
    }
}
