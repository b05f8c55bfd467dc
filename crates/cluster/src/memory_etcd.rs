//! An etcd in memory, for tests and simulations: revisions, leases, transactions, history, and a
//! former leader.

use crate::boot_clock::BootTime;
use crate::request::{Change, Compare, Failure, KeyValue, Reply, Request, Response, Txn, Write};
use std::collections::BTreeMap;
use std::time::Duration;

/// The term of the leader. A former leader has the term before.
const TERM: u64 = 5;

/// An etcd in memory. Time passes only with calls.
#[derive(Clone, Debug, Default)]
pub struct MemoryEtcd {
    keys: BTreeMap<String, KeyValue>,
    revision: i64,
    leases: BTreeMap<i64, (Duration, BootTime)>,
    last_lease: i64,
    /// All changes since the beginning. Changes of one revision are adjacent.
    pub history: Vec<Change>,
    /// Watches from revisions up to this one fail.
    pub compacted: i64,
    /// Until when a former leader answers keep-alives.
    pub former_leader_until: BootTime,
}

impl MemoryEtcd {
    /// Executes a request.
    ///
    /// # Errors
    ///
    /// Fails if the request binds a key to a lease that does not exist.
    pub fn execute(&mut self, now: BootTime, request: &Request) -> Result<Response, Failure> {
        self.expire(now);
        let mut term = TERM;
        let reply = match request {
            Request::Grant { ttl_s } => {
                self.last_lease += 1;
                let ttl = Duration::from_secs(ttl_s.unsigned_abs());
                self.leases.insert(self.last_lease, (ttl, now.plus(ttl)));
                Reply::Granted { lease: self.last_lease, ttl_s: *ttl_s }
            }
            Request::KeepAlive { .. } if now < self.former_leader_until => {
                term -= 1;
                Reply::KeptAlive { ttl_s: 8 }
            }
            Request::KeepAlive { lease } => match self.leases.get_mut(lease) {
                Some((ttl, expires)) => {
                    *expires = now.plus(*ttl);
                    Reply::KeptAlive { ttl_s: ttl.as_secs().cast_signed() }
                }
                None => Reply::KeptAlive { ttl_s: 0 },
            },
            Request::Revoke { lease } => {
                self.end_lease(*lease);
                Reply::Revoked
            }
            Request::Read(key) => Reply::Read(self.keys.get(key).cloned().into_iter().collect()),
            Request::ReadPrefix(prefix) => {
                let keys = self.keys.values().filter(|key| key.key.starts_with(prefix));
                Reply::Read(keys.cloned().collect())
            }
            Request::Commit(txn) => Reply::Committed { succeeded: self.commit(txn)? },
        };
        Ok(Response { revision: self.revision, term, reply })
    }

    /// Removes leases that have expired.
    pub fn expire(&mut self, now: BootTime) {
        let expired: Vec<i64> = (self.leases.iter())
            .filter(|(_, (_, expires))| *expires <= now)
            .map(|(lease, _)| *lease)
            .collect();
        for lease in expired {
            self.end_lease(lease);
        }
    }

    /// Extends all leases, as when etcd has restarted or elected a leader.
    pub fn restart(&mut self, now: BootTime) {
        for (ttl, expires) in self.leases.values_mut() {
            *expires = now.plus(*ttl);
        }
    }

    /// Returns the revision of the last change.
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Returns the changes from a revision on; `None` if they were compacted.
    pub fn changes(&self, from: i64) -> Option<Vec<Change>> {
        let first = self.history.partition_point(|change| change.revision() < from);
        (from > self.compacted).then(|| self.history[first..].to_vec())
    }

    fn commit(&mut self, txn: &Txn) -> Result<bool, Failure> {
        assert!(txn.compares.len() <= 128 && txn.writes.len() <= 128, "the limit of etcd");
        let holds = |compare: &Compare| match compare {
            Compare::Revision(key, revision) => {
                self.keys.get(key).map_or(0, |key| key.revision) == *revision
            }
            Compare::Lease(key, lease) => self.keys.get(key).is_some_and(|key| key.lease == *lease),
            Compare::Absent(key) => !self.keys.contains_key(key),
        };
        if !txn.compares.iter().all(holds) {
            return Ok(false);
        }
        let has_lease = |lease: i64| lease == 0 || self.leases.contains_key(&lease);
        let is_lease_absent =
            |write: &Write| matches!(write, Write::Put { lease, .. } if !has_lease(*lease));
        if txn.writes.iter().any(is_lease_absent) {
            return Err(Failure::LeaseAbsent);
        }
        self.revision += 1;
        for write in &txn.writes {
            match write.clone() {
                Write::Put { key, value, lease } => {
                    let entry =
                        KeyValue { key: key.clone(), value, revision: self.revision, lease };
                    self.history.push(Change::Put(entry.clone()));
                    self.keys.insert(key, entry);
                }
                Write::Delete(key) => self.delete(&key),
            }
        }
        Ok(true)
    }

    fn end_lease(&mut self, lease: i64) {
        if self.leases.remove(&lease).is_none() {
            return;
        }
        let bound = self.keys.values().filter(|key| key.lease == lease);
        let bound: Vec<String> = bound.map(|key| key.key.clone()).collect();
        if !bound.is_empty() {
            self.revision += 1;
        }
        for key in &bound {
            self.delete(key);
        }
    }

    fn delete(&mut self, key: &str) {
        if self.keys.remove(key).is_some() {
            self.history.push(Change::Deleted { key: key.to_owned(), revision: self.revision });
        }
    }
}
