//! Finds the owners of the slots of requests that are forwarded, and begins again if one has
//! changed.

use super::Cluster;
use super::endpoint::Endpoint;
use super::forwarding::link::LinkContext;
use super::forwarding::links::LinkKey;
use super::forwarding::memory::HeldBytes;
use super::forwarding::request::{Part, Target};
use super::forwarding::shared::Shared;
use super::forwarding::state::{ForwardCounts, Forwarding};
use super::forwarding::{Forward, ForwardResults};
use nuthatch_cluster::map::SlotMap;
use nuthatch_cluster::node_id::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

/// The maximum time in which a request is sent to owners that refuse it, or cannot be reached.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Requests and replies use at most one of this many bytes of the memory budget, as connections do.
const MEMORY_RATIO: u64 = 2;

impl Cluster {
    /// Sets whether clients of RESP get the replies of other nodes, instead of `MOVED`.
    #[must_use]
    pub fn with_forwarding(mut self, forwards_resp: bool) -> Self {
        self.forwarding.forwards_resp = forwards_resp;
        self
    }

    /// Returns whether requests of RESP are forwarded.
    pub(crate) fn forwards_resp(&self) -> bool {
        self.forwarding.forwards_resp
    }

    /// Returns what was forwarded since the start.
    pub(crate) fn forward_counts(&self) -> ForwardCounts {
        let Shared { forwarded, failed, .. } = &*self.forwarding.shared;
        ForwardCounts {
            forwarded: forwarded.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
        }
    }

    /// Returns the maximum bytes of requests that are being forwarded, and of their replies.
    fn max_forwarded_bytes(&self) -> usize {
        usize::try_from(self.cache.memory() / MEMORY_RATIO).unwrap_or(usize::MAX)
    }

    /// Returns whether there is memory for a request to be forwarded.
    pub(crate) fn has_room_to_forward(&self, request: &Forward) -> bool {
        let Shared { memory, .. } = &*self.forwarding.shared;
        memory.has_room(request.copied_len, self.max_forwarded_bytes())
    }

    /// Returns how the memory of forwarded requests and their replies has changed since the last
    /// call.
    pub(crate) fn take_forwarded_memory_change(&self) -> isize {
        self.forwarding.shared.memory.take_change()
    }

    /// Sends a request to the owners of its slots. Its outcome is put into `results` under this
    /// token.
    pub(crate) fn forward(&self, request: Forward, results: &Arc<ForwardResults>, token: u64) {
        self.forwarding.shared.forwarded.fetch_add(1, Ordering::Relaxed);
        let nodes = || nodes_of(&self.map());
        let until = Instant::now() + MAX_TIME;
        let held = HeldBytes::new(&self.forwarding.shared.memory, request.copied_len);
        let part = Part::begin(request, nodes, (until, held), (Arc::clone(results), token));
        if part.positions.is_empty() {
            self.forwarding.shared.fail(&part, "this node knows no other yet");
        }
        self.route(&part);
    }

    /// Sends a part to the owners of its slots.
    fn route(&self, part: &Part) {
        let map = self.map();
        let mut groups: BTreeMap<Option<NodeId>, Vec<usize>> = BTreeMap::new();
        for position in &part.positions {
            let node = match part.forward.targets[*position] {
                Target::Node(id) => Some(id),
                Target::Slot(slot) => map.ownership(slot).map(|ownership| ownership.owner),
            };
            groups.entry(node).or_default().push(*position);
        }
        for (id, positions) in groups {
            let node = id.and_then(|id| map.node(id));
            let endpoint = node.and_then(|found| Endpoint::for_nodes(&found.node));
            let part = part.with(positions);
            match endpoint {
                Some(endpoint) => {
                    let key = LinkKey { endpoint, is_resp3: part.forward.is_resp3 };
                    let (access, max_bytes) = (self.access(), self.max_forwarded_bytes());
                    let context = LinkContext { access, max_bytes };
                    self.forwarding.links.push(key, part, &self.forwarding.shared, context);
                }
                None if node.is_some() => {
                    self.forwarding.shared.retry(part, "the node has no address");
                }
                // A node that has lost its slots drops its items before it serves any again.
                None if part.is_for_nodes() && id.is_some_and(|id| has_no_slots(&map, id)) => {
                    part.forward.complete(&part.positions, Vec::new(), None);
                }
                None => self.forwarding.shared.retry(part, "the slot has no owner with a lease"),
            }
        }
    }
}

/// Returns all nodes: those that have a lease, and owners of slots whose lease has ended. These
/// keep their items if they have a lease again before others take the slots.
fn nodes_of(map: &SlotMap) -> Vec<NodeId> {
    let runs = map.groups().iter().flat_map(|group| group.runs());
    let owners = runs.map(|(_, ownership)| ownership.owner);
    let nodes: BTreeSet<NodeId> = map.nodes().keys().copied().chain(owners).collect();
    nodes.into_iter().collect()
}

fn has_no_slots(map: &SlotMap, id: NodeId) -> bool {
    map.slots_of(id).is_empty()
}

/// The thread that sends requests again. Dropping it ends it, and the threads of the connections.
pub(crate) struct Forwarder {
    cluster: Arc<Cluster>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started.
    pub(crate) fn start(cluster: Arc<Cluster>) -> io::Result<Self> {
        let shared = Arc::clone(&cluster);
        let thread = thread::Builder::new().name("nuthatch-forward".into()).spawn(move || {
            while let Some(parts) = shared.forwarding.shared.next_delayed() {
                for part in &parts {
                    shared.route(part);
                }
            }
        })?;
        Ok(Self { cluster, thread: Some(thread) })
    }
}

impl fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarder").finish_non_exhaustive()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        let Forwarding { shared, links, .. } = &self.cluster.forwarding;
        shared.stop();
        if let Some(thread) = self.thread.take() {
            // A panic has stopped the program already: see `Running::wait`.
            let _ = thread.join();
        }
        links.join();
    }
}
