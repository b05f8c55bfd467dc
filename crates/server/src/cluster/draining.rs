//! Waits until a node has no slots any more.

use super::Cluster;
use nuthatch_cluster::lease::Permission;
use nuthatch_cluster::node_id::NodeId;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The maximum pause between two looks at what is not signalled: the permit and the other nodes.
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// How draining a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All slots have moved to other nodes.
    Complete,
    /// Some slots have not moved in time.
    Late {
        /// Their number.
        slots: usize,
    },
    /// There is no other node that takes slots, or this node has no lease.
    Impossible,
    /// The server has stopped meanwhile.
    Stopped,
}

impl Cluster {
    /// Notes that this node has no slots after a request to drain.
    pub(super) fn note_drained(&self) {
        self.transitions().is_drained = true;
        self.changed.notify_all();
    }

    /// Waits until all slots have been moved away after
    /// [`Command::Drain`](nuthatch_cluster::member::Command::Drain), or until this time. Returns
    /// early if no other node can take slots, or if this node has no lease.
    pub fn wait_until_drained(&self, until: Instant) -> Drained {
        let mut transitions = self.transitions();
        loop {
            if transitions.is_drained {
                return Drained::Complete;
            }
            if transitions.is_stopping {
                return Drained::Stopped;
            }
            if self.permission() != Permission::Lease || !self.has_other_active_nodes() {
                return Drained::Impossible;
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return Drained::Late { slots: self.served_slots() };
            };
            let wait = self.changed.wait_timeout(transitions, left.min(MAX_PAUSE));
            transitions = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn has_other_active_nodes(&self) -> bool {
        self.has_active_nodes_beside(self.id)
    }

    /// Returns whether there is an active node other than this one.
    pub(crate) fn has_active_nodes_beside(&self, id: NodeId) -> bool {
        let map = self.map();
        let mut others = map.nodes().iter().filter(|(other, _)| **other != id);
        others.any(|(_, registered)| registered.node.takes_slots())
    }
}
