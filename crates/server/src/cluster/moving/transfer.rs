//! The steps of a transfer.
//!
//! Requests for the slots are executed until the last step, and the keys that they change are
//! recorded before. Each key is sent after its last change: in the order of the frames, a later
//! record of a key replaces an earlier one.

use super::batches::Batches;
use super::sender::Sender;
use super::stopped::Stopped;
use crate::cluster::Cluster;
use crate::cluster::connection::{CallError, Connection};
use crate::cluster::endpoint::Endpoint;
use crate::cluster::transitions::Outgoing;
use crate::compression::Compression;
use nuthatch_cache::Session;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SlotSet;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// The slots are sealed when a round sends this few changed keys and bytes, or after this many
/// rounds.
const CHANGES_TO_SEAL: usize = 256;
const BYTES_TO_SEAL: usize = 4 << 20;
const MAX_ROUNDS: usize = 32;
/// How often a transfer begins anew while its slots are served, since a client has removed all
/// items.
const MAX_RESTARTS: u32 = 4;
/// How often the items of sealed slots are sent. After the second flush there are none.
const MAX_SEALED_SENDS: u32 = 3;
/// How long slots are sealed until their items are at the target. Their requests wait meanwhile.
const MAX_SEALED_TIME: Duration = Duration::from_millis(1500);
/// The pause between attempts to begin, and the maximum time of all attempts.
const BEGIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_BEGIN_TIME: Duration = Duration::from_mins(1);

/// What executes transfers, one after the other.
pub(super) struct Transfer<'c> {
    cluster: &'c Cluster,
    sender: Sender<'c>,
    session: Session<'c>,
    /// Chooses random numbers.
    random: RandomState,
}

impl<'c> Transfer<'c> {
    /// Creates it with a session of the cache.
    pub(super) fn new(
        cluster: &'c Cluster,
        compression: &'c Compression,
        session: Session<'c>,
    ) -> Self {
        let sender = Sender { cluster, compression };
        Self { cluster, sender, session, random: RandomState::new() }
    }

    /// Sends the items of slots. Afterwards the slots are sealed.
    pub(super) fn run(&mut self, outgoing: &Outgoing) -> Result<(), Stopped> {
        let Outgoing { transfer, target, slots, .. } = outgoing;
        let cluster = self.cluster;
        let pause = |until| cluster.pause(*transfer, until);
        self.wait_until_served(outgoing, &pause)?;
        let mut batches = self.connect(*target, &pause)?;
        let mut restarts = 0;
        let flushes = loop {
            let flushes = cluster.flushes();
            let is_outdated = || restarts < MAX_RESTARTS && cluster.flushes() != flushes;
            self.begin(&mut batches, slots, &pause)?;
            self.record_changes(outgoing)?;
            let session = &mut self.session;
            self.sender.send_items(session, &mut batches, (slots, &is_outdated), &pause)?;
            self.catch_up(&mut batches, &pause)?;
            if !is_outdated() {
                break flushes;
            }
            restarts += 1;
        };
        self.seal(outgoing)?;
        let sealed_until = Instant::now() + MAX_SEALED_TIME;
        let in_time = |until| Instant::now() < sealed_until && pause(until);
        let ended = self.send_sealed(&mut batches, slots, flushes, &in_time);
        if let (Err(Stopped::Cancelled), true) = (&ended, pause(Instant::now())) {
            let text = "the last changes were not sent within 1.5 s, for which clients wait";
            return Err(Stopped::Failed(text.to_owned()));
        }
        ended
    }

    /// Sends the last changes of sealed slots. If a client has removed all items since the items at
    /// the target were read, those are dropped, and what is left is sent again.
    ///
    /// A flush before the last slots were sealed is followed by the items that were stored after
    /// it; one after that by none. So clients that remove all items again and again do not keep
    /// slots from moving.
    fn send_sealed(
        &mut self,
        batches: &mut Batches<'_>,
        slots: &SlotSet,
        mut flushes: u64,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<(), Stopped> {
        self.sender.send_changes(&mut self.session, batches, pause)?;
        for _ in 1..MAX_SEALED_SENDS {
            batches.call(("COMPLETE", ""), pause)?;
            let before = std::mem::replace(&mut flushes, self.cluster.flushes());
            if flushes == before {
                return Ok(());
            }
            // The flush may be in progress.
            self.session.wait_for_guards_of_others();
            self.begin(batches, slots, pause)?;
            let session = &mut self.session;
            self.sender.send_items(session, batches, (slots, &|| false), pause)?;
        }
        batches.call(("COMPLETE", ""), pause)?;
        Ok(())
    }

    /// Sends the keys that are changed meanwhile, until they are few.
    fn catch_up(
        &mut self,
        batches: &mut Batches<'_>,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<(), Stopped> {
        batches.set_urgent(true);
        for _ in 0..MAX_ROUNDS {
            let keys = self.cluster.changes.len();
            let bytes = self.sender.send_changes(&mut self.session, batches, pause)?;
            if keys <= CHANGES_TO_SEAL && bytes <= BYTES_TO_SEAL {
                break;
            }
        }
        Ok(batches.finish(pause)?)
    }

    /// Waits until the items of the slots have been dropped, if another node has served them, and
    /// until those of the last process are there.
    fn wait_until_served(
        &self,
        outgoing: &Outgoing,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<(), Stopped> {
        let cluster = self.cluster;
        while cluster.transitions().stale.intersects(&outgoing.slots)
            || cluster.cache.is_restoring()
        {
            wait(pause)?;
        }
        Ok(())
    }

    fn connect(
        &self,
        target: NodeId,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<Batches<'c>, Stopped> {
        let map = self.cluster.map();
        let endpoint = map.node(target).and_then(|found| Endpoint::for_nodes(&found.node));
        let Some(endpoint) = endpoint else {
            return Err(Stopped::Failed("the node has no address for other nodes".into()));
        };
        let access = self.cluster.access();
        let connection = Connection::open(&endpoint, &access, &|| pause(Instant::now()))?;
        let from = self.cluster.id().to_string();
        let head = ["CLUSTER", "TRANSFER", &from, "", "ITEMS"].map(|part| part.as_bytes().to_vec());
        Ok(Batches::new(self.cluster, connection, head))
    }

    /// Begins a transfer at the target, as soon as it is ready.
    fn begin(
        &self,
        batches: &mut Batches<'_>,
        slots: &SlotSet,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<(), Stopped> {
        // A positive integer of RESP.
        batches.set_token(self.random.hash_one(Instant::now()) >> 1);
        let until = Instant::now() + MAX_BEGIN_TIME;
        loop {
            match batches.call(("BEGIN", &slots.to_string()), pause) {
                Err(CallError::Refused(text)) if text.starts_with("TRYAGAIN") => {
                    if Instant::now() >= until {
                        return Err(Stopped::Failed(text));
                    }
                }
                result => {
                    let reply = result?;
                    let max_len = reply.strip_prefix("OK ").and_then(|len| len.parse().ok());
                    batches.set_max_len(max_len.unwrap_or(usize::MAX));
                    return Ok(());
                }
            }
            wait(pause)?;
        }
    }

    /// Records from now on which keys of the slots are changed.
    fn record_changes(&mut self, outgoing: &Outgoing) -> Result<(), Stopped> {
        let cluster = self.cluster;
        let (_, is_awaited) = cluster.changes.take();
        if is_awaited {
            cluster.resume_requests();
        }
        let mut transitions = cluster.transitions();
        let current = transitions.wanted(outgoing.transfer).ok_or(Stopped::Cancelled)?;
        cluster.moving.add(&current.slots);
        cluster.served.remove(&current.slots);
        drop(transitions);
        // A request that changes a key without recording it began before.
        self.session.wait_for_guards_of_others();
        Ok(())
    }

    /// Stops to execute requests for the slots, and waits until none is in progress.
    fn seal(&mut self, outgoing: &Outgoing) -> Result<(), Stopped> {
        let cluster = self.cluster;
        let mut transitions = cluster.transitions();
        let current = transitions.wanted(outgoing.transfer).ok_or(Stopped::Cancelled)?;
        current.is_sealed = true;
        let slots = current.slots.clone();
        // First, requests for the slots wait; then none is executed.
        cluster.update(&mut transitions);
        cluster.moving.remove(&slots);
        drop(transitions);
        self.session.wait_for_guards_of_others();
        cluster.log_end(&mut cluster.transitions());
        Ok(())
    }
}

fn wait(pause: &dyn Fn(Instant) -> bool) -> Result<(), Stopped> {
    if pause(Instant::now() + BEGIN_PAUSE) { Ok(()) } else { Err(Stopped::Cancelled) }
}
