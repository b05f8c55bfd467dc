//! The steps of a transfer.
//!
//! Requests for the slots are executed until the last step, and the keys that they change are
//! recorded before. Each key is sent after its last change: in the order of the frames, a later
//! record of a key replaces an earlier one.

use super::batches::Batches;
use crate::cluster::Cluster;
use crate::cluster::connection::{CallError, Connection};
use crate::cluster::endpoint::Endpoint;
use crate::cluster::frame::Record;
use crate::cluster::transitions::Outgoing;
use crate::compression::Compression;
use crate::item_bits::may_restore;
use nuthatch_cache::{Item, Session};
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::{SlotSet, slot_of};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// Items that are examined under one epoch guard.
const STEP: usize = 256;
/// Recorded keys that are sent together, while items are still being sent.
const CHANGES_TO_SEND: usize = 4096;
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

/// Why a transfer has ended without all items at the target.
pub(super) enum Stopped {
    /// It is not wanted any more.
    Cancelled,
    /// It has failed for this reason.
    Failed(String),
}

impl From<CallError> for Stopped {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Io(error) => Self::Failed(error.to_string()),
            CallError::Refused(text) => Self::Failed(text),
            CallError::Cancelled => Self::Cancelled,
            CallError::TooLong => Self::Failed("the reply is too long".to_owned()),
        }
    }
}

/// What executes transfers, one after the other.
pub(super) struct Transfer<'c> {
    cluster: &'c Cluster,
    compression: &'c Compression,
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
        Self { cluster, compression, session, random: RandomState::new() }
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
            self.send_items(&mut batches, slots, &is_outdated, &pause)?;
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
        self.send_changes(batches, pause)?;
        for _ in 1..MAX_SEALED_SENDS {
            batches.call(("COMPLETE", ""), pause)?;
            let before = std::mem::replace(&mut flushes, self.cluster.flushes());
            if flushes == before {
                return Ok(());
            }
            // The flush may be in progress.
            self.session.wait_for_guards_of_others();
            self.begin(batches, slots, pause)?;
            self.send_items(batches, slots, &|| false, pause)?;
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
            let bytes = self.send_changes(batches, pause)?;
            if keys <= CHANGES_TO_SEAL && bytes <= BYTES_TO_SEAL {
                break;
            }
        }
        Ok(batches.finish(pause)?)
    }

    /// Waits until the items of the slots have been dropped, if another node has served them.
    fn wait_until_served(
        &self,
        outgoing: &Outgoing,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<(), Stopped> {
        while self.cluster.transitions().stale.intersects(&outgoing.slots) {
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

    /// Sends all items of the slots, unless they are outdated meanwhile.
    fn send_items(
        &mut self,
        batches: &mut Batches<'_>,
        slots: &SlotSet,
        is_outdated: &dyn Fn() -> bool,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<(), Stopped> {
        let (mut cursor, mut buffer) = (0, Vec::new());
        loop {
            // Keys of a step whose items do not fit in the frame.
            let mut later: Vec<Box<[u8]>> = Vec::new();
            let guard = self.session.guard_without_freeing();
            cursor = guard.scan_in_memory(cursor, STEP, |item| {
                if !slots.contains(slot_of(item.key())) {
                    return;
                }
                if batches.is_full() {
                    later.push(item.key().into());
                } else {
                    add(self.compression, batches, item, &mut buffer);
                }
            });
            drop(guard);
            self.send_keys(later, batches, pause)?;
            if batches.is_full() {
                batches.send(pause)?;
            } else if !pause(Instant::now()) {
                return Err(Stopped::Cancelled);
            }
            if self.cluster.changes.len() >= CHANGES_TO_SEND {
                // Clients wait if there are too many.
                batches.set_urgent(true);
                self.send_changes(batches, pause)?;
                batches.set_urgent(false);
            }
            if cursor == 0 || is_outdated() {
                return Ok(());
            }
        }
    }

    /// Sends the keys that were changed so far. Returns the bytes of their records.
    fn send_changes(
        &mut self,
        batches: &mut Batches<'_>,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<usize, Stopped> {
        let (keys, is_awaited) = self.cluster.changes.take();
        if is_awaited {
            self.cluster.resume_requests();
        }
        // A request that has recorded a key may not have changed it yet.
        self.session.wait_for_guards_of_others();
        self.send_keys(keys, batches, pause)
    }

    /// Sends the items of keys, or that they have none. Returns the bytes of their records.
    fn send_keys(
        &mut self,
        keys: impl IntoIterator<Item = Box<[u8]>>,
        batches: &mut Batches<'_>,
        pause: &dyn Fn(Instant) -> bool,
    ) -> Result<usize, Stopped> {
        let (mut bytes, mut buffer) = (0, Vec::new());
        for key in keys {
            let before = batches.len();
            let guard = self.session.guard_without_freeing();
            match guard.peek(&key) {
                Some(item) => add(self.compression, batches, &item, &mut buffer),
                None => batches.add(&Record::Removal { key: &key }),
            }
            drop(guard);
            bytes += batches.len() - before;
            if batches.is_full() {
                batches.send(pause)?;
            }
        }
        Ok(bytes)
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

/// Adds an item, or its removal if it has no value that another node can use.
fn add(
    compression: &Compression,
    batches: &mut Batches<'_>,
    item: &Item<'_>,
    buffer: &mut Vec<u8>,
) {
    if may_restore(item)
        && let Ok(raw) = compression.raw_item(*item, buffer)
    {
        return batches.add(&Record::of(&raw));
    }
    batches.leave_out(item.key());
}

fn wait(pause: &dyn Fn(Instant) -> bool) -> Result<(), Stopped> {
    if pause(Instant::now() + BEGIN_PAUSE) { Ok(()) } else { Err(Stopped::Cancelled) }
}
