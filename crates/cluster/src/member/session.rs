//! The registration of a member, and its lease.

use super::machine::{Member, Pending, Phase};
use super::messages::{Event, Output};
use crate::boot_clock::BootTime;
use crate::lease::Lease;
use crate::map::Registered;
use crate::request::{Compare, Failure, KeyValue, Reply, Request, Response, Txn, Write};
use std::time::Duration;

impl Member {
    /// Takes the next step of the registration, if its time has come.
    pub(super) fn advance_session(&mut self, now: BootTime) {
        if self.calls.session.is_some() {
            return;
        }
        let read = Request::ReadPrefix(self.config.keys.prefix().to_owned());
        match self.phase {
            Phase::Start(at) if at <= now => {
                let grant = Request::Grant { ttl_s: self.config.ttl_s() };
                self.calls.session = Some(self.call(now, grant));
                self.phase = Phase::Granting;
            }
            Phase::BeforeRead(at) if at <= now => {
                self.calls.session = Some(self.call(now, read));
                self.phase = Phase::Reading;
            }
            Phase::Registered if self.has_to_read && self.retry_at <= now => {
                self.calls.session = Some(self.call(now, read));
                self.has_to_read = false;
            }
            _ => {}
        }
    }

    /// Handles the response to a step of the registration.
    pub(super) fn session_response(
        &mut self,
        now: BootTime,
        pending: Pending,
        result: Result<Response, Failure>,
    ) {
        let retry = now.plus(self.config.retry);
        if let Phase::Stopping { before, next } = self.phase {
            return self.stopping_response(now, (before, next), result);
        }
        match (self.phase, result) {
            (_, Err(Failure::LeaseAbsent)) => self.lose(now),
            (phase, Err(Failure::Unknown(_) | Failure::Refused(_))) => match phase {
                Phase::Granting => self.phase = Phase::Start(retry),
                // The node may be registered or not: reading the keys shows it.
                Phase::Reading | Phase::Registering | Phase::Loading => {
                    self.phase = Phase::BeforeRead(retry);
                }
                _ => {
                    self.has_to_read = true;
                    self.retry_at = retry;
                }
            },
            (phase, Ok(response)) => match (phase, response.reply) {
                (Phase::Granting, Reply::Granted { lease, ttl_s }) => {
                    let (ttl, margin) = (seconds(ttl_s), self.config.margin);
                    self.lease = Some(Lease::granted(lease, pending.sent, ttl, margin));
                    self.own_leases.push(lease);
                    self.emit(Event::LeaseGranted { lease });
                    self.phase = Phase::BeforeRead(now);
                }
                (Phase::Reading, Reply::Read(keys)) => {
                    self.register(now, &keys, response.revision);
                }
                (Phase::Registering, Reply::Committed { succeeded: true }) => {
                    let read = Request::ReadPrefix(self.config.keys.prefix().to_owned());
                    self.calls.session = Some(self.call(now, read));
                    self.phase = Phase::Loading;
                }
                (Phase::Registering, _) => self.phase = Phase::BeforeRead(now),
                (Phase::Loading | Phase::Registered, Reply::Read(keys)) => {
                    self.load(now, &keys, response.revision);
                }
                _ => {}
            },
        }
    }

    /// Writes the node's key, unless another process with the same identifier is registered.
    fn register(&mut self, now: BootTime, keys: &[KeyValue], revision: i64) {
        let Some(lease) = self.lease.as_ref().map(Lease::id) else { return };
        self.check_held(keys, revision);
        if !self.check_identity(now, keys) {
            return;
        }
        self.give_up_slots(now, keys, revision);
        if self.is_forgotten_owner(now, keys) {
            self.phase = Phase::BeforeRead(now.plus(self.config.retry));
            return;
        }
        let key = self.config.keys.node(self.id());
        let existing = keys.iter().find(|found| found.key == key).map(|found| found.lease);
        let compare = match existing {
            None => Compare::Absent(key.clone()),
            Some(own) if own != 0 && self.own_leases.contains(&own) => {
                Compare::Lease(key.clone(), own)
            }
            Some(other) => {
                self.end_serving_without_lease();
                let problem = format!(
                    "node {} is registered with the lease {other:x} of another process: this one \
                     waits until that lease ends; give each node a folder of its own",
                    self.id()
                );
                self.view.problems.begin(&key, problem);
                self.phase = Phase::BeforeRead(now.plus(Duration::from_secs(1)));
                return;
            }
        };
        let writes = vec![Write::Put { key, value: self.node.encode(), lease }];
        let mut txn = Txn { compares: vec![compare], writes };
        self.add_identity(&mut txn, keys);
        self.calls.session = Some(self.call(now, Request::Commit(txn)));
        self.phase = Phase::Registering;
    }

    /// Takes all keys over, after the registration or when a watch has failed.
    fn load(&mut self, now: BootTime, keys: &[KeyValue], revision: i64) {
        if !self.check_identity(now, keys) {
            return;
        }
        let Some(lease) = &self.lease else { return };
        let (id, until) = (lease.id(), lease.until());
        let key = self.config.keys.node(self.id());
        let own = keys.iter().find(|found| found.key == key).map(|found| found.lease);
        if own != Some(id) {
            return self.lose_registration(now, own);
        }
        self.view.replace(keys, revision);
        self.watch += 1;
        self.outputs.push_back(Output::Watch { watch: self.watch, from: revision + 1 });
        if self.phase == Phase::Loading {
            self.phase = Phase::Registered;
            self.settle.note_change(now);
            // Slots that the node has lost come before the permission to serve the others.
            self.reconcile(now);
            self.permit(until);
        }
    }

    /// Drops the lease, and begins anew.
    pub(super) fn lose(&mut self, now: BootTime) {
        self.outputs.push_back(Output::Permit(BootTime::default()));
        if let Some(transfer) = self.transfer.take() {
            self.emit(Event::MoveCancelled { transfer: transfer.number });
        }
        self.lease = None;
        self.calls.session = None;
        self.calls.renewal = None;
        self.calls.change = None;
        self.has_to_read = false;
        // Events of the last watch are ignored from now on.
        self.watch += 1;
        self.phase = Phase::Start(now.plus(self.config.retry));
    }

    /// Sends a keep-alive, if its time has come.
    pub(super) fn advance_renewal(&mut self, now: BootTime) {
        let Some(lease) = &mut self.lease else { return };
        if self.calls.renewal.is_some() || now < lease.next() {
            return;
        }
        lease.send(now);
        let keep_alive = Request::KeepAlive { lease: lease.id() };
        self.calls.renewal = Some(self.call(now, keep_alive));
    }

    /// Handles the response to a keep-alive, or to the read that confirms it.
    pub(super) fn renewal_response(&mut self, now: BootTime, result: Result<Response, Failure>) {
        let Some(lease) = &mut self.lease else { return };
        let response = match result {
            Ok(response) => response,
            Err(Failure::LeaseAbsent) => return self.lose(now),
            Err(Failure::Unknown(_) | Failure::Refused(_)) => {
                return lease.failed(now.plus(self.config.retry));
            }
        };
        match response.reply {
            Reply::KeptAlive { ttl_s } if ttl_s <= 0 => self.lose(now),
            Reply::KeptAlive { ttl_s } => {
                lease.kept_alive(seconds(ttl_s), response.term);
                if self.phase == Phase::Registered {
                    let read = Request::Read(self.config.keys.node(self.id()));
                    self.calls.renewal = Some(self.call(now, read));
                }
            }
            Reply::Read(keys) => {
                let own = keys.first().map(|key| key.lease);
                if own != Some(lease.id()) {
                    return self.lose_registration(now, own);
                }
                if lease.confirmed(response.term) {
                    let until = lease.until();
                    self.permit(until);
                } else {
                    lease.failed(now.plus(self.config.retry));
                }
            }
            _ => lease.failed(now.plus(self.config.retry)),
        }
    }

    /// Notes that the watch reports the node's own key.
    pub(super) fn check_registration(&mut self, now: BootTime) {
        let own = self.view.map().node(self.id()).map(|Registered { lease, .. }| *lease);
        if self.phase == Phase::Registered && own != self.lease() {
            self.lose_registration(now, own);
        }
    }

    /// Drops the lease, since the node's key does not exist or is bound to another lease.
    fn lose_registration(&mut self, now: BootTime, own: Option<i64>) {
        self.lose(now);
        if own.is_some() {
            // Another process has the identifier of this node.
            self.end_serving_without_lease();
        }
    }
}

fn seconds(ttl_s: i64) -> Duration {
    Duration::from_secs(u64::try_from(ttl_s).unwrap_or_default())
}
