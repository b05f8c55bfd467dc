//! Ends the lease of a node that an operator wants to be without slots.
//!
//! Ending the lease of another node would not end its permit: both it and the new owners could
//! serve a slot. So the node ends its lease itself, after its permit. The request for it is part of
//! the value of its key.

use super::machine::{Member, Phase};
use super::messages::Event;
use crate::boot_clock::BootTime;
use crate::keys::Subject;
use crate::map::{Group, Registered};
use crate::node::{Node, Participation};
use crate::node_id::NodeId;
use crate::request::{Compare, Failure, KeyValue, Reply, Request, Response, Txn, Write};
use std::time::Duration;

/// The time after which a forgotten node registers, even if no other node has taken its slots: then
/// an operator can activate it.
const MAX_ABSENCE: Duration = Duration::from_secs(30);

impl Member {
    /// Writes the request to a node's key, unless the node has another lease by then.
    pub(super) fn forget(&mut self, now: BootTime, id: NodeId) {
        let Some(Registered { node, lease, .. }) = self.view.map().node(id).cloned() else {
            return self.emit(Event::Problem(format!("node {id} is unknown, and not forgotten")));
        };
        let key = self.config.keys.node(id);
        let compares = vec![Compare::Lease(key.clone(), lease)];
        let write = if node.is_stopped {
            // It has ended its permit itself, before it wrote that it has stopped.
            Write::Delete(key)
        } else {
            // No node plans slots for it.
            let node = Node { participation: Participation::Waiting, is_forgotten: true, ..node };
            Write::Put { key, value: node.encode(), lease }
        };
        let writes = vec![write];
        let pending = self.call(now, Request::Commit(Txn { compares, writes }));
        self.calls.forget = Some((pending, id));
    }

    /// Handles the response to the request. The watch shows when the lease has ended.
    pub(super) fn forget_response(&mut self, id: NodeId, result: &Result<Response, Failure>) {
        let problem = match result {
            Ok(Response { reply: Reply::Committed { succeeded: true }, .. }) => return,
            Ok(_) => "it has another lease now",
            Err(Failure::LeaseAbsent) => "its lease has ended already",
            Err(Failure::Unknown(_)) => "etcd did not respond",
            Err(Failure::Refused(_)) => "etcd refuses the request",
        };
        self.emit(Event::Problem(format!("node {id} may not be forgotten: {problem}; try again")));
    }

    /// Returns whether this node has to stay without a registration, since it was forgotten and
    /// other nodes have not taken its slots yet. With a registration it would be their owner again.
    pub(super) fn is_forgotten_owner(&self, now: BootTime, keys: &[KeyValue]) -> bool {
        now < self.forgotten_until
            && keys.iter().any(|key| match self.config.keys.subject(&key.key) {
                Some(Subject::Group(index)) => {
                    let group = Group::decode(index, key.revision, &key.value);
                    group.is_ok_and(|group| group.runs().iter().any(|run| run.1.owner == self.id()))
                }
                _ => false,
            })
    }

    /// Ends the permit and then the lease, and registers as a waiting node, if another node has
    /// requested it.
    pub(super) fn check_forgotten(&mut self, now: BootTime) {
        let own = self.view.map().node(self.id());
        let is_forgotten = own.is_some_and(|own| own.node.is_forgotten);
        let Some(lease) = self.lease().filter(|lease| {
            let is_current = own.is_some_and(|own| own.lease == *lease);
            self.phase == Phase::Registered && is_forgotten && is_current
        }) else {
            return;
        };
        self.lose(now);
        self.end_serving_without_lease();
        self.forgotten_until = now.plus(MAX_ABSENCE);
        self.node.participation = Participation::Waiting;
        // The new registration does not replace this lease, so other nodes see its end.
        self.own_leases.clear();
        let _ = self.call(now, Request::Revoke { lease });
        self.emit(Event::Problem(
            "an operator has requested this node to end its lease (nuthatch cluster forget): it \
             waits without slots; `nuthatch cluster join` gives it slots"
                .to_owned(),
        ));
    }
}
