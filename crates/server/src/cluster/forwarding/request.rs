//! A request that is being forwarded, and its parts for each owner.

use super::memory::HeldBytes;
use super::results::{ForwardOutcome, ForwardResults};
use nuthatch_cluster::node_id::NodeId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What the positions of a request stand for.
pub(crate) enum Targets {
    /// A position for each of these slots.
    Slots(Vec<u16>),
    /// A position for each node of the cluster.
    AllNodes,
}

/// Creates the request for some positions.
type Build = dyn Fn(&[usize]) -> Vec<u8> + Send + Sync;

/// The requests to other nodes, as bytes of RESP.
pub(crate) enum Requests {
    /// The same request, whatever the positions.
    Whole(Vec<u8>),
    /// The request for some of the positions, which are in ascending order.
    Split(Box<Build>),
}

/// The replies of other nodes, as bytes of RESP, each with the positions that it is for. If there
/// are none, the text is the reason. The reply of a node that is gone is empty.
pub(crate) type Replies = Result<Vec<(Vec<usize>, Vec<u8>)>, String>;

/// Creates the reply for the client.
type Join = dyn FnOnce(Replies) -> Vec<u8> + Send;

/// A request to forward.
pub(crate) struct Forward {
    /// The slots of its keys, or all nodes.
    pub(crate) targets: Targets,
    /// The requests to other nodes.
    pub(crate) requests: Requests,
    /// Whether the replies are those of RESP3.
    pub(crate) is_resp3: bool,
    /// Whether it may change items.
    pub(crate) writes: bool,
    /// The bytes of memory of the copied request, with its parts.
    pub(crate) copied_len: usize,
    /// Whether this node executes the request, too, after the others.
    pub(crate) then_executes: bool,
    /// Creates the reply for the client.
    pub(crate) join: Box<Join>,
}

/// What a position stands for.
pub(crate) enum Target {
    Slot(u16),
    Node(NodeId),
}

/// A request that is being forwarded.
pub(crate) struct InProgress {
    pub(crate) targets: Vec<Target>,
    requests: Requests,
    pub(crate) is_resp3: bool,
    pub(crate) writes: bool,
    /// Until when it is sent again if a node refuses it.
    pub(crate) until: Instant,
    recipient: (Arc<ForwardResults>, u64),
    progress: Mutex<Progress>,
}

struct Progress {
    replies: Vec<(Vec<usize>, Vec<u8>)>,
    /// The number of positions without a reply.
    missing: usize,
    /// `None` once the request has ended.
    join: Option<Box<Join>>,
    /// The bytes of the request and of its replies; `None` once it has ended.
    held: Option<HeldBytes>,
}

impl InProgress {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the reply for some positions, with the count of its bytes if it has any. After the last
    /// one, the request has ended.
    pub(crate) fn complete(
        &self,
        positions: &[usize],
        reply: Vec<u8>,
        reply_held: Option<HeldBytes>,
    ) {
        let mut progress = self.progress();
        progress.missing -= positions.len();
        if progress.join.is_none() {
            return;
        }
        if let (Some(held), Some(reply_held)) = (&mut progress.held, reply_held) {
            // If bytes were counted twice, even for a moment, the server could close connections to
            // free memory.
            held.absorb(reply_held);
        }
        progress.replies.push((positions.to_vec(), reply));
        if progress.missing == 0
            && let Some(join) = progress.join.take()
        {
            let (replies, held) = (std::mem::take(&mut progress.replies), progress.held.take());
            drop(progress);
            self.end(ForwardOutcome::Reply(join(Ok(replies)), held));
        }
    }

    /// Ends the request with an error, unless it had ended before. Calls `note` before the client
    /// gets the error.
    pub(crate) fn fail(&self, reason: &str, note: impl FnOnce()) {
        let Some(join) = self.take_join() else { return };
        note();
        self.end(ForwardOutcome::Reply(join(Err(reason.to_owned())), None));
    }

    /// Ends the request, of which it is not known whether it was executed, unless it had ended
    /// before. Calls `note` before the connection of the client is closed.
    pub(crate) fn lose(&self, note: impl FnOnce()) {
        if self.take_join().is_some() {
            note();
            self.end(ForwardOutcome::Unknown);
        }
    }

    /// Returns whether the request has ended: no more of it has to be sent.
    pub(crate) fn has_ended(&self) -> bool {
        self.progress().join.is_none()
    }

    /// Ends the request without replies. Returns `None` if it had ended before.
    fn take_join(&self) -> Option<Box<Join>> {
        let mut progress = self.progress();
        (progress.replies, progress.held) = (Vec::new(), None);
        progress.join.take()
    }

    fn end(&self, outcome: ForwardOutcome) {
        let (results, token) = &self.recipient;
        results.put(*token, outcome);
    }
}

/// Some positions of a request, which are sent to one node.
pub(crate) struct Part {
    pub(crate) forward: Arc<InProgress>,
    pub(crate) positions: Vec<usize>,
    /// Why it has to be sent again, if it was sent before.
    pub(crate) refusal: Option<String>,
    /// The request for these positions, if it was created.
    split: Option<Vec<u8>>,
}

impl Part {
    /// Begins a request: returns a part with all positions.
    pub(crate) fn begin(
        request: Forward,
        nodes: impl FnOnce() -> Vec<NodeId>,
        (until, held): (Instant, HeldBytes),
        recipient: (Arc<ForwardResults>, u64),
    ) -> Self {
        let Forward { targets, requests, is_resp3, writes, join, .. } = request;
        let targets: Vec<Target> = match targets {
            Targets::Slots(slots) => slots.into_iter().map(Target::Slot).collect(),
            Targets::AllNodes => nodes().into_iter().map(Target::Node).collect(),
        };
        let positions: Vec<usize> = (0..targets.len()).collect();
        let (missing, join, held) = (positions.len(), Some(join), Some(held));
        let progress = Mutex::new(Progress { replies: Vec::new(), missing, join, held });
        let forward =
            InProgress { targets, requests, is_resp3, writes, until, recipient, progress };
        Self { forward: Arc::new(forward), positions, refusal: None, split: None }
    }

    /// Returns a part of the same request with these positions.
    pub(crate) fn with(&self, positions: Vec<usize>) -> Self {
        let split = match &self.forward.requests {
            Requests::Whole(_) => None,
            Requests::Split(build) => Some(build(&positions)),
        };
        Self { forward: Arc::clone(&self.forward), positions, refusal: self.refusal.clone(), split }
    }

    /// Returns the request to the node.
    pub(crate) fn request(&self) -> &[u8] {
        match (&self.forward.requests, &self.split) {
            (_, Some(split)) => split,
            (Requests::Whole(bytes), None) => bytes,
            (Requests::Split(_), None) => &[],
        }
    }

    /// Returns whether the positions are nodes instead of slots.
    pub(crate) fn is_for_nodes(&self) -> bool {
        let first = self.positions.first().and_then(|position| self.forward.targets.get(*position));
        matches!(first, Some(Target::Node(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::ForwardMemory;
    use super::*;
    use std::sync::atomic::{AtomicIsize, Ordering};

    /// A long reply was counted up to three times for a moment, so that connections were closed.
    #[test]
    fn bytes_of_a_reply_are_counted_once_until_the_worker_has_it() {
        let memory = Arc::new(ForwardMemory::default());
        let counted = Arc::new(AtomicIsize::new(0));
        let results = {
            let (memory, counted) = (Arc::clone(&memory), Arc::clone(&counted));
            ForwardResults::new(move || {
                counted.fetch_add(memory.take_change(), Ordering::Relaxed);
            })
        };
        let results = Arc::new(results);
        let request = Forward {
            targets: Targets::Slots(vec![1, 2]),
            requests: Requests::Whole(Vec::new()),
            is_resp3: false,
            writes: false,
            copied_len: 10,
            then_executes: false,
            join: Box::new(|replies| {
                replies.expect("replies").into_iter().flat_map(|(_, reply)| reply).collect()
            }),
        };
        let held = HeldBytes::new(&memory, 10);
        let recipient = (Arc::clone(&results), 7);
        let part = Part::begin(request, Vec::new, (Instant::now(), held), recipient);
        for position in [1, 0] {
            let held = HeldBytes::new(&memory, 30);
            part.forward.complete(&[position], vec![b'r'; 30], Some(held));
        }
        assert_eq!(counted.load(Ordering::Relaxed), 70);
        let outcomes = results.take();
        assert!(matches!(&*outcomes, [(7, ForwardOutcome::Reply(reply, _))] if reply.len() == 60));
        drop(outcomes);
        assert_eq!(memory.take_change(), -70);
    }
}
