//! Stopping without leaving: the slots wait for the next process of the node.
//!
//! The key of the node is bound to a lease of the requested time, in the place of the short one
//! that its process has renewed. The next process replaces that lease.

use super::config::whole_seconds;
use super::machine::{Member, Phase};
use super::messages::Event;
use crate::boot_clock::BootTime;
use crate::node::Node;
use crate::request::{Compare, Failure, Reply, Request, Response, Txn, Write};
use std::time::Duration;

impl Member {
    /// Ends serving, and lets the slots wait for this time.
    pub(super) fn stop(&mut self, now: BootTime, wait: Duration) {
        let lease = self.lease().filter(|_| self.phase == Phase::Registered && !wait.is_zero());
        self.lose(now);
        self.end_serving_without_lease();
        self.phase = Phase::Left;
        if let Some(before) = lease {
            self.phase = Phase::Stopping { before, next: None };
            let grant = Request::Grant { ttl_s: whole_seconds(wait) };
            self.calls.session = Some(self.call(now, grant));
        }
    }

    /// Handles the response to a step of stopping. After a failure, the slots wait until the
    /// previous lease ends.
    pub(super) fn stopping_response(
        &mut self,
        now: BootTime,
        (before, next): (i64, Option<i64>),
        result: Result<Response, Failure>,
    ) {
        self.phase = Phase::Left;
        match (result.map(|response| response.reply), next) {
            (Ok(Reply::Granted { lease, .. }), None) => {
                let key = self.config.keys.node(self.id());
                let compares = vec![Compare::Lease(key.clone(), before)];
                let value = Node { is_stopped: true, ..self.node.clone() }.encode();
                let writes = vec![Write::Put { key, value, lease }];
                self.phase = Phase::Stopping { before, next: Some(lease) };
                self.calls.session =
                    Some(self.call(now, Request::Commit(Txn { compares, writes })));
            }
            (Ok(Reply::Committed { succeeded: true }), Some(lease)) => {
                self.emit(Event::Stopped { lease });
            }
            _ => {}
        }
    }
}
