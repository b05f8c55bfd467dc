//! Whether the data in etcd are those that this node has seen before.
//!
//! If etcd lost its data, or was restored from a backup, the owners of slots in it are not those
//! that nodes act on: two nodes could serve one slot. A node that notices it serves nothing any
//! more, until it is started again.

use super::config::Data;
use super::machine::{Member, Pending, Phase};
use super::messages::Event;
use crate::boot_clock::BootTime;
use crate::request::{Compare, KeyValue, Reply, Response, Txn, Write};
use crate::slot::SlotSet;

impl Member {
    /// Returns whether a response is of an earlier revision than those that this node had seen when
    /// it sent the request. Reads and transactions of etcd never go back.
    pub(super) fn is_outdated(pending: &Pending, response: &Response) -> bool {
        let is_ordered = matches!(response.reply, Reply::Read(_) | Reply::Committed { .. });
        is_ordered && response.revision < pending.revision
    }

    /// Forgets the items of the previous run if these data are not those that it had seen.
    pub(super) fn check_held(&mut self, keys: &[KeyValue], revision: i64) {
        let Data { identity, revision: seen } = &self.config.held.data;
        let key = self.config.keys.identity();
        let is_same =
            keys.iter().any(|found| found.key == key && found.value.trim_end() == identity);
        if self.identity.is_some() || is_same && revision >= *seen || self.held().next().is_none() {
            return;
        }
        self.holding.forget(&SlotSet::all());
        let problem = "etcd has other data than at the last stop of this node, or was restored \
                       from a backup: the node drops the items of its last process; other nodes \
                       may have outdated ones, so stop all nodes of the cluster, delete its keys \
                       (`etcdctl del --prefix /nuthatch/NAME/`), and start the nodes";
        self.emit(Event::Problem(problem.to_owned()));
    }

    /// Compares the identity of the data with the one that this node has seen first. Returns false
    /// if it is another one. Keys that operators have deleted have none.
    pub(super) fn check_identity(&mut self, now: BootTime, keys: &[KeyValue]) -> bool {
        let key = self.config.keys.identity();
        let Some(found) = keys.iter().find(|found| found.key == key) else { return true };
        match &self.identity {
            Some(known) if *known != found.value => {
                self.refuse_data(now);
                false
            }
            _ => {
                self.identity = Some(found.value.clone());
                true
            }
        }
    }

    /// Adds the identity to a transaction, if these keys have none.
    pub(super) fn add_identity(&self, txn: &mut Txn, keys: &[KeyValue]) {
        let key = self.config.keys.identity();
        if keys.iter().any(|found| found.key == key) {
            return;
        }
        let new = || format!("{} {}\n", self.node.id, self.node.started_ms);
        let value = self.identity.clone().unwrap_or_else(new);
        txn.compares.push(Compare::Absent(key.clone()));
        txn.writes.push(Write::Put { key, value, lease: 0 });
    }

    /// Stops to serve: the data in etcd are others than before.
    pub(super) fn refuse_data(&mut self, now: BootTime) {
        self.lose(now);
        self.end_serving_without_lease();
        self.phase = Phase::Refused;
        let problem = "etcd has lost data of the cluster, or was restored from a backup, so the \
                       owners of slots are unknown: this node serves nothing until it is started \
                       again; stop all nodes of the cluster, delete its keys (`etcdctl del \
                       --prefix /nuthatch/NAME/`), and start the nodes";
        self.view.problems.begin(&self.config.keys.identity(), problem.to_owned());
    }
}
