//! What goes into a member, and what comes out.

use crate::boot_clock::BootTime;
use crate::map::SlotMap;
use crate::node_id::NodeId;
use crate::request::{Change, Failure, Request, Response};
use crate::slot::SlotSet;
use std::sync::Arc;
use std::time::Duration;

/// Something that happened, for [`Member::handle`](super::Member::handle).
#[derive(Clone, Debug)]
pub enum Input {
    /// Time has passed.
    Tick,
    /// A call has a response, or failed.
    Response {
        /// The number of the call.
        call: u64,
        /// The response.
        result: Result<Response, Failure>,
    },
    /// A watch reports changes, in the order of their revisions.
    Changes {
        /// The number of the watch.
        watch: u64,
        /// All changes up to this revision have been reported.
        revision: i64,
        /// The changes.
        changes: Vec<Change>,
    },
    /// A watch cannot continue from its last revision, since etcd has compacted it.
    WatchFailed {
        /// The number of the watch.
        watch: u64,
    },
    /// All items of a transfer are at the target, and the node has sealed its slots: it executes no
    /// requests for them until [`Event::Gained`] reports them again.
    MoveFinished {
        /// The number of the transfer.
        transfer: u64,
    },
    /// A transfer has failed. The node serves its slots on.
    MoveFailed {
        /// The number of the transfer.
        transfer: u64,
    },
    /// An operator or the program has a request.
    Command(Command),
}

/// A request of an operator or of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Take a part of the slots.
    Join,
    /// Move all slots to other nodes. [`Event::Drained`] follows.
    Drain,
    /// End the lease now: other nodes take the slots without their items.
    Leave,
    /// Stop serving, and let the slots wait for the next process for this time. That process has
    /// the lease of [`Event::Stopped`] as its
    /// [`previous_leases`](super::MemberConfig::previous_leases), or the current lease if that
    /// event does not follow.
    Stop(Duration),
    /// Let this node end its lease: other nodes take its slots without their items. It registers
    /// again, and waits without slots.
    Forget(NodeId),
}

/// What the program has to do next, in this order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send a request to etcd, and pass its response to the member.
    Call {
        /// The number of the call.
        call: u64,
        /// The request.
        request: Request,
        /// The time after which the member ignores a response.
        timeout: Duration,
    },
    /// End the previous watch, and watch all keys of the cluster.
    Watch {
        /// The number of the watch.
        watch: u64,
        /// The first revision to report.
        from: i64,
    },
    /// Set the time until which the node may serve.
    Permit(BootTime),
    /// Let the node serve until this time at least, without a lease.
    PermitWithoutLease(BootTime),
    /// Handle an event.
    Event(Event),
}

/// What to do with items of a slot that a node gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Items {
    /// Keep them: no other node has served the slot since.
    Kept,
    /// Keep those that the previous owner has sent in its last transfer.
    Received,
    /// Drop them before the slot is served: another node has served it.
    Dropped,
}

/// Something that the cache server has to know.
#[derive(Clone, Debug)]
pub enum Event {
    /// The node owns these slots, and serves them while its permit holds.
    Gained {
        /// The slots.
        slots: SlotSet,
        /// What to do with their items.
        items: Items,
    },
    /// The node no longer owns these slots.
    Lost {
        /// The slots.
        slots: SlotSet,
    },
    /// Another node begins to send these slots: drop their items, and accept those of the transfer.
    Incoming {
        /// The node that owns the slots.
        from: NodeId,
        /// The slots.
        slots: SlotSet,
    },
    /// Send the items of these slots, and all changes of them, to another node. Seal the slots at
    /// the end, and pass [`Input::MoveFinished`].
    MoveOut {
        /// The number of the transfer.
        transfer: u64,
        /// The slots.
        slots: SlotSet,
        /// The node that becomes the owner.
        target: NodeId,
    },
    /// A transfer has ended without effect: the target is gone, or this node's lease.
    MoveCancelled {
        /// The number of the transfer.
        transfer: u64,
    },
    /// The node has a lease, to which it is about to bind its key. Store it for the next process:
    /// [`MemberConfig::previous_leases`](super::MemberConfig::previous_leases).
    LeaseGranted {
        /// The lease.
        lease: i64,
    },
    /// The node has stopped, and this lease is that of its next process.
    Stopped {
        /// The lease.
        lease: i64,
    },
    /// The map has changed.
    MapChanged(Arc<SlotMap>),
    /// All slots have been moved away after [`Command::Drain`].
    Drained,
    /// Something that an operator should know. It is not repeated before it has ended.
    Problem(String),
    /// The end of a problem.
    ProblemEnded(String),
}
