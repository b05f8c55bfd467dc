//! The task that connects a member with etcd and with the cache server.

use crate::boot_clock::{BootClock, BootTime};
use crate::etcd::{Etcd, Watch, WatchUpdate};
use crate::lease::Permit;
use crate::member::{Command, Event, Input, Member, MemberConfig, Output};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};

/// The maximum pause between two looks at the clock: timers stand still while the machine is
/// suspended.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The cache server of a node.
pub trait SlotServer: Send {
    /// Handles an event, in the order in which events occur. The permit to serve, which may follow,
    /// waits for the return, and so do keep-alives: take no longer than milliseconds.
    ///
    /// `member` has the lease and the epochs to store for a warm restart.
    fn handle(&mut self, member: &Member, event: Event);

    /// Notes that the permit is about to be set until this time or, if that has passed, that it was
    /// ended.
    fn note_permit(&mut self, until: BootTime) {
        let _ = until;
    }
}

/// Passes requests of the program to a running member. The task ends when all are dropped: its
/// lease then runs out, unless the node is started again before that.
#[derive(Clone, Debug)]
pub struct MemberHandle {
    inputs: UnboundedSender<Input>,
}

impl MemberHandle {
    /// Passes a request of an operator.
    pub fn command(&self, command: Command) {
        self.send(Input::Command(command));
    }

    /// Notes that all items of a transfer are at the target, and its slots are sealed.
    pub fn move_finished(&self, transfer: u64) {
        self.send(Input::MoveFinished { transfer });
    }

    /// Notes that a transfer has failed.
    pub fn move_failed(&self, transfer: u64) {
        self.send(Input::MoveFailed { transfer });
    }

    fn send(&self, input: Input) {
        // The task has ended if nothing receives it: then there is nothing to do.
        let _ = self.inputs.send(input);
    }
}

/// The task of a member.
pub struct Membership {
    member: Member,
    prefix: String,
    etcd: Arc<Etcd>,
    clock: Arc<dyn BootClock>,
    permit: Arc<Permit>,
    requests: UnboundedReceiver<Input>,
    responses: (UnboundedSender<Input>, UnboundedReceiver<Input>),
    tasks: JoinSet<()>,
    watch: Option<AbortHandle>,
}

impl Membership {
    /// Creates the task of a member, and the handle for its requests.
    #[must_use]
    pub fn new(
        etcd: Arc<Etcd>,
        config: MemberConfig,
        clock: Arc<dyn BootClock>,
        permit: Arc<Permit>,
    ) -> (Self, MemberHandle) {
        let (inputs, requests) = unbounded_channel();
        let membership = Self {
            prefix: config.keys.prefix().to_owned(),
            member: Member::new(config),
            etcd,
            clock,
            permit,
            requests,
            responses: unbounded_channel(),
            tasks: JoinSet::new(),
            watch: None,
        };
        (membership, MemberHandle { inputs })
    }

    /// Runs until all handles are dropped, or until the node has left. The permit ends with it.
    pub async fn run(mut self, server: &mut dyn SlotServer) {
        // Dropped also if the task is aborted.
        let _end = EndOfPermit(self.permit.clone());
        let mut input = Input::Tick;
        loop {
            self.member.handle(self.clock.now(), input);
            while let Some(output) = self.member.next_output() {
                self.perform(output, server);
            }
            if self.member.has_left() {
                // The lease ends with the response to the last request.
                self.watch.take().inspect(AbortHandle::abort);
                while self.tasks.join_next().await.is_some() {}
                return;
            }
            let pause = self.member.wake_at().since(self.clock.now()).min(MAX_PAUSE);
            input = tokio::select! {
                request = self.requests.recv() => match request {
                    Some(request) => request,
                    None => return,
                },
                Some(response) = self.responses.1.recv() => response,
                Some(_) = self.tasks.join_next() => Input::Tick,
                () = tokio::time::sleep(pause) => Input::Tick,
            };
        }
    }

    fn perform(&mut self, output: Output, server: &mut dyn SlotServer) {
        let (etcd, responses) = (self.etcd.clone(), self.responses.0.clone());
        match output {
            Output::Call { call, request, timeout } => {
                self.tasks.spawn(async move {
                    let result = etcd.execute(&request, timeout).await;
                    let _ = responses.send(Input::Response { call, result });
                });
            }
            Output::Watch { watch, from } => {
                self.watch.take().inspect(AbortHandle::abort);
                let mut changes = Watch::new(etcd, &self.prefix, from);
                let task = async move {
                    loop {
                        let (input, is_end) = match changes.next().await {
                            WatchUpdate::Changes { revision, changes } => {
                                (Input::Changes { watch, revision, changes }, false)
                            }
                            WatchUpdate::Compacted => (Input::WatchFailed { watch }, true),
                        };
                        if responses.send(input).is_err() || is_end {
                            return;
                        }
                    }
                };
                self.watch = Some(self.tasks.spawn(task));
            }
            Output::Permit(until) if until > self.clock.now() => {
                server.note_permit(until);
                self.permit.set(until);
            }
            Output::Permit(until) => {
                self.permit.set(until);
                server.note_permit(until);
            }
            Output::PermitWithoutLease(until) => {
                server.note_permit(until.max(self.permit.until()));
                self.permit.extend_without_lease(until);
            }
            Output::Event(event) => server.handle(&self.member, event),
        }
    }
}

/// Ends the permit when it is dropped.
struct EndOfPermit(Arc<Permit>);

impl Drop for EndOfPermit {
    fn drop(&mut self) {
        self.0.set(BootTime::default());
    }
}
