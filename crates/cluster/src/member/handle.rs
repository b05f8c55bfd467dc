//! The entry of a member: what happened, and when it wants to be called again.

use super::machine::{Member, Pending, Phase};
use super::messages::{Command, Input};
use crate::boot_clock::BootTime;
use crate::node::Participation;
use crate::request::{Failure, Request, Response};

impl Member {
    /// Handles something that happened. `now` never goes back. Afterwards
    /// [`next_output`](Self::next_output) returns what the program has to do.
    pub fn handle(&mut self, now: BootTime, input: Input) {
        self.expire_calls(now);
        match input {
            Input::Response { call, result } => self.response(now, call, result),
            Input::Changes { watch, revision, changes } if watch == self.watch => {
                self.view.apply(&changes, revision);
                self.reconcile(now);
                self.check_registration(now);
            }
            Input::WatchFailed { watch } if watch == self.watch => self.has_to_read = true,
            Input::Tick | Input::Changes { .. } | Input::WatchFailed { .. } => {}
            Input::MoveFinished { transfer } => self.end_transfer(transfer, true),
            Input::MoveFailed { transfer } => self.end_transfer(transfer, false),
            Input::Command(command) => self.command(now, command),
        }
        self.check_forgotten(now);
        self.has_to_plan |= self.replan_at.take_if(|at| *at <= now).is_some();
        self.advance_session(now);
        self.advance_renewal(now);
        self.reconcile(now);
        self.advance_ownership(now);
    }

    /// Returns when to call [`handle`](Self::handle) with `Input::Tick`, if nothing happens before.
    pub fn wake_at(&self) -> BootTime {
        let end = BootTime::from_nanos(u64::MAX);
        let deadlines = self.calls.pending().map(|call| call.deadline);
        let mut wake = deadlines.min().unwrap_or(end);
        if self.calls.session.is_none()
            && let Phase::Start(at) | Phase::BeforeRead(at) = self.phase
        {
            wake = wake.min(at);
        }
        if let (Some(lease), None) = (&self.lease, self.calls.renewal) {
            wake = wake.min(lease.next());
        }
        if self.phase != Phase::Registered {
            return wake;
        }
        if let Some(at) = self.replan_at {
            wake = wake.min(at);
        }
        let retry = self.retry_at;
        let plan = retry.max(self.plan_at).max(self.settle.stable_at().unwrap_or_default());
        if self.has_to_read && self.calls.session.is_none() && retry > self.last {
            wake = wake.min(retry);
        }
        let is_idle = self.calls.change.is_none();
        if is_idle && self.transfer.is_some() && retry > self.last {
            wake = wake.min(retry);
        }
        if is_idle && self.has_to_plan && plan > self.last {
            wake = wake.min(plan);
        }
        wake
    }

    /// Returns whether the node has left the cluster on purpose, or has stopped.
    pub fn has_left(&self) -> bool {
        self.phase == Phase::Left
    }

    fn response(&mut self, now: BootTime, call: u64, result: Result<Response, Failure>) {
        let is_it = |pending: &mut Pending| pending.call == call;
        let pending = self.calls.pending().find(|pending| pending.call == call);
        if let (Some(pending), Ok(response)) = (pending, &result)
            && Self::is_outdated(&pending, response)
        {
            return self.refuse_data(now);
        }
        if let Some(pending) = self.calls.session.take_if(is_it) {
            self.note_whether_away(pending.sent, &result);
            self.session_response(now, pending, result);
        } else if let Some(pending) = self.calls.renewal.take_if(is_it) {
            self.note_whether_away(pending.sent, &result);
            self.renewal_response(now, result);
        } else if let Some((_, id)) = self.calls.forget.take_if(|(pending, _)| pending.call == call)
        {
            self.forget_response(id, &result);
        } else if let Some((_, purpose)) =
            self.calls.change.take_if(|(pending, _)| pending.call == call)
        {
            self.change_response(now, &purpose, &result);
        }
    }

    /// Lets calls fail whose deadline has passed. A response that arrives later is ignored.
    fn expire_calls(&mut self, now: BootTime) {
        self.last = now;
        let pending: Vec<Pending> = self.calls.pending().collect();
        for pending in pending {
            if pending.deadline <= now {
                let failure = Failure::Unknown("no response within the deadline".into());
                self.response(now, pending.call, Err(failure));
            }
        }
    }

    fn command(&mut self, now: BootTime, command: Command) {
        match command {
            Command::Join => {
                self.node.participation = Participation::Active;
                self.forgotten_until = BootTime::default();
            }
            Command::Drain => self.node.participation = Participation::Draining,
            Command::Forget(id) => self.forget(now, id),
            Command::Stop(wait) => self.stop(now, wait),
            Command::Leave => {
                let lease = self.lease();
                self.lose(now);
                self.phase = Phase::Left;
                self.end_serving_without_lease();
                if let Some(lease) = lease {
                    let _ = self.call(now, Request::Revoke { lease });
                }
            }
        }
        self.has_to_plan = true;
    }
}
