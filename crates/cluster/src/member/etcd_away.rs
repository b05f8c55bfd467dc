//! Serving without a lease while etcd cannot be reached.
//!
//! A node with [`MemberConfig::serves_without_etcd`](super::MemberConfig) prefers to serve rather
//! than to be the only server of its slots. A request that etcd does not answer extends its permit
//! as a keep-alive does that etcd confirms: by the time to live after it was sent. So a process
//! that was stopped executes nothing before it has found that etcd still cannot be reached.
//!
//! An answer of etcd ends this: the node has a lease again, or none, and then learns which slots it
//! still owns before it serves them.

use super::machine::{Member, Phase};
use super::messages::Output;
use crate::boot_clock::BootTime;
use crate::lease::Lease;
use crate::request::{Failure, KeyValue, Response};

impl Member {
    /// Sets the permit of the lease.
    pub(super) fn permit(&mut self, until: BootTime) {
        self.etcd_away.may_serve = true;
        self.outputs.push_back(Output::Permit(until));
    }

    /// Notes how a request for the lease or the registration has ended, which was sent at `sent`.
    pub(super) fn note_whether_away(&mut self, sent: BootTime, result: &Result<Response, Failure>) {
        self.etcd_away.is_away = matches!(result, Err(Failure::Unknown(_)));
        if !self.config.serves_without_etcd || !self.etcd_away.may_serve {
            return;
        }
        match result {
            Err(Failure::Unknown(_)) => {
                let until = sent.plus(self.config.ttl).minus(self.config.margin);
                self.outputs.push_back(Output::PermitWithoutLease(until));
            }
            Err(Failure::Refused(_)) => {
                self.end_serving_without_lease();
                let lease = self.lease.as_ref().filter(|_| self.phase == Phase::Registered);
                let until = lease.map_or(BootTime::default(), Lease::until);
                self.outputs.push_back(Output::Permit(until));
            }
            Ok(_) | Err(Failure::LeaseAbsent) => {}
        }
    }

    /// Applies a read of all keys before the registration: etcd may be away again after it.
    pub(super) fn give_up_slots(&mut self, now: BootTime, keys: &[KeyValue], revision: i64) {
        if self.config.serves_without_etcd && self.etcd_away.may_serve {
            self.view.replace(keys, revision);
            self.reconcile(now);
        }
    }

    /// Notes that the node must not serve before it has a lease again.
    pub(super) fn end_serving_without_lease(&mut self) {
        self.etcd_away.may_serve = false;
    }
}
