//! Executes requests of many connections together.
//!
//! A batch decodes requests, hashes their keys and prefetches index lines and items. Then it
//! executes the requests in order. So the processor waits for many cache lines at once instead of
//! one after the other.

use super::attempts::{Input, Retry, first_attempt};
use super::connection::Connection;
use super::connections::Connections;
use super::disk::Disk;
use super::driver::{Context, Decoders, Driver, Known, Step};
use super::forwarding::Forwards;
use super::reactor::{Number, Reactor};
use super::work::{Progress, Work};
use crate::cluster::{Admission, BatchPermit, Cluster};
use crate::span::Span;
use crate::state::{MemcachedState, PrefetchedKey, Sampler, Server};
use nuthatch_cache::{BatchKey, Guard, Session};
use std::ops::Range;

/// Maximum requests in a batch.
const MAX_REQUESTS: usize = 64;

/// Approximate maximum bytes of the replies of a batch: they are sent while they are still in the
/// processor's cache.
const MAX_REPLY_BYTES: usize = 128 << 10;

/// Maximum keys that a batch prefetches. More would leave the processor's cache before they are
/// used.
const MAX_PREFETCHED_KEYS: usize = 256;

/// Maximum effort in one iteration, for one connection and for all connections. Beyond it, replies
/// are sent and other connections are served first. A request counts 1, and 1 more for each KiB of
/// its length.
const MAX_CONNECTION_EFFORT: usize = 1024;
const MAX_ITERATION_EFFORT: usize = 16 * MAX_CONNECTION_EFFORT;

/// A decoded request.
struct Queued<R> {
    work: usize,
    /// The offset of its end, with bytes after it that need no reply.
    end: usize,
    request: R,
    /// The indexes of its keys among those that are prefetched.
    keys: Range<u32>,
    /// Whether one of its keys is probably on disk.
    on_disk: bool,
    /// Whether it has one key, whose slot this node of a cluster serves under the guard of the
    /// batch. Otherwise, its slots are checked when it is executed.
    is_served: bool,
}

/// Buffers for the requests of a batch, used again for the next one.
#[derive(Default)]
pub(crate) struct Batch {
    progress: Vec<Progress>,
    /// The first connection that may have more requests.
    first: usize,
    /// The effort of this iteration, which [`MAX_ITERATION_EFFORT`] limits.
    effort: usize,
    /// Mean bytes of a reply in the last batch.
    mean_reply_len: usize,
    spans: Vec<Span>,
    /// The keys of the batch, and the number of the request of each.
    keys: Vec<BatchKey>,
    numbers: Vec<u32>,
    /// Keys of snapshots whose index lines are prefetched.
    snapshot_keys: Vec<PrefetchedKey>,
    /// Connections with value references that are not sent yet.
    unsent: Vec<Number>,
    /// Chooses requests whose keys are counted, for the live page.
    sampler: Sampler,
}

/// The parts of a worker that the execution of requests uses.
pub(crate) struct Resources<'a, 'c, T: Decoders> {
    pub(crate) reactor: &'a Reactor,
    pub(crate) connections: &'a mut Connections<T>,
    pub(crate) session: &'a mut Session<'c>,
    pub(crate) server: &'a Server,
    pub(crate) memcache: &'a MemcachedState,
    /// The disk tier, if there is one.
    pub(crate) disk: Option<&'a Disk>,
    /// Forwards requests to other nodes of a cluster, if there is one.
    pub(crate) forwards: Option<&'a Forwards>,
    /// Whether other threads have sessions.
    pub(crate) shared: bool,
    /// Whether connections take much memory.
    pub(crate) short_of_memory: bool,
}

impl Batch {
    /// Creates the buffers of a worker of this server.
    pub(crate) fn new(server: &Server) -> Self {
        Self { sampler: server.hot_key_sampler(), ..Self::default() }
    }

    /// Begins an iteration with the input of this many connections.
    pub(crate) fn begin(&mut self, works: usize) {
        self.progress.clear();
        self.progress.resize(works, Progress::default());
        (self.first, self.effort) = (0, 0);
    }

    /// Executes the next batch of requests of connections with one protocol. Returns the range of
    /// `works` whose connections it may have served; `None` once all input is executed or must wait
    /// for the next iteration.
    pub(crate) fn execute_next<T: Decoders, D: Driver<T>>(
        &mut self,
        works: &[Work],
        resources: &mut Resources<'_, '_, T>,
    ) -> Option<Range<usize>> {
        let first = self.first;
        if self.effort >= MAX_ITERATION_EFFORT {
            self.progress[first..].iter_mut().for_each(|progress| progress.waits = true);
            self.first = works.len();
        }
        if self.first >= works.len() {
            return None;
        }
        let reactor = resources.reactor;
        let max =
            (MAX_REPLY_BYTES / self.mean_reply_len.max(1)).clamp(MAX_REQUESTS / 16, MAX_REQUESTS);
        let mut queued = Vec::with_capacity(max);
        self.spans.clear();
        while self.first < works.len() {
            let Work { connection, .. } = works[self.first];
            let bytes = works[self.first].bytes(reactor);
            if !self.decode::<T, D>((self.first, connection), bytes, &mut queued, resources) {
                break;
            }
            self.first += 1;
        }
        if !queued.is_empty() {
            self.execute::<T, D>(works, &mut queued, resources);
        }
        Some(first..works.len().min(self.first + 1))
    }

    /// Returns the progress of each connection.
    pub(crate) fn progress(&self) -> &[Progress] {
        &self.progress
    }

    /// Decodes the input of one connection. Returns false if the batch is full.
    fn decode<'b, T: Decoders, D: Driver<T>>(
        &mut self,
        (work, connection): (usize, Number),
        bytes: &'b [u8],
        queued: &mut Vec<Queued<D::Request<'b>>>,
        resources: &mut Resources<'_, '_, T>,
    ) -> bool {
        let Some(connection) = resources.connections.get(connection) else { return true };
        connection.begin_batch();
        let progress = &mut self.progress[work];
        if progress.held.is_some() {
            // Requests after the one that waits are decoded again later.
            return true;
        }
        if progress.effort() >= MAX_CONNECTION_EFFORT {
            progress.waits = progress.decoded < bytes.len();
            return true;
        }
        let (before, first) = (progress.effort(), queued.len());
        let mut is_done = true;
        while connection.is_open() && progress.decoded < bytes.len() {
            // A login raises the limits of the next request, so requests are executed one at a time
            // before it.
            let waits = !connection.trusted && queued.iter().any(|one| one.work == work);
            if queued.len() == queued.capacity() || waits {
                is_done = false;
                break;
            }
            match D::next(connection, &bytes[progress.decoded..], &mut self.spans) {
                Step::Request { request, consumed } => {
                    progress.decoded += consumed;
                    let end = progress.decoded;
                    let (on_disk, is_served) = (false, false);
                    let keys = 0..0;
                    queued.push(Queued { work, end, request, keys, on_disk, is_served });
                }
                Step::Skip { consumed } => {
                    progress.decoded += consumed;
                    // These bytes belong to the previous request of the connection, if it is in
                    // this batch.
                    match queued.last_mut().filter(|last| last.work == work) {
                        Some(last) => last.end = progress.decoded,
                        None => progress.executed = progress.decoded,
                    }
                }
                Step::More => break,
            }
        }
        progress.requests += queued.len() - first;
        self.effort += progress.effort() - before;
        is_done
    }

    /// Hashes the keys of all requests, and prefetches their index lines and items.
    fn prefetch<T: Decoders, D: Driver<T>>(
        &mut self,
        queued: &mut [Queued<D::Request<'_>>],
        server: &Server,
        guard: &Guard<'_>,
    ) {
        let Self { keys, numbers, spans, snapshot_keys, .. } = self;
        keys.clear();
        numbers.clear();
        for (number, Queued { request, keys: range, .. }) in queued.iter_mut().enumerate() {
            let is_written = D::replaces(request);
            range.start = keys.len() as u32;
            D::keys(request, spans, |key| {
                if let Some(key) = server.snapshot_key(key) {
                    snapshot_keys.push(key.prefetch());
                    return snapshot_keys.len() < MAX_PREFETCHED_KEYS;
                }
                let hash = server.cache.hash(key);
                let key_of = if is_written { BatchKey::to_write } else { BatchKey::to_read };
                keys.push(key_of(hash));
                numbers.push(number as u32);
                keys.len() < MAX_PREFETCHED_KEYS
            });
            range.end = keys.len() as u32;
        }
        if let Some(snapshots) = &server.snapshots {
            for key in snapshot_keys.drain(..) {
                snapshots.prefetch_record(key);
            }
        }
        guard.prefetch(keys);
        if server.disk.is_some() {
            for (_, number) in keys.iter().zip(numbers).filter(|(key, _)| key.is_on_disk()) {
                queued[*number as usize].on_disk = true;
            }
        }
    }

    /// Checks the slots of requests with one key. The items that are prefetched arrive meanwhile.
    fn check_slots<T: Decoders, D: Driver<T>>(
        &self,
        queued: &mut [Queued<D::Request<'_>>],
        (server, cluster): (&Server, &Cluster),
    ) {
        for Queued { request, is_served, .. } in queued {
            let mut count = 0;
            D::keys(request, &self.spans, |key| {
                count += 1;
                let is_only = count == 1 && server.snapshot_key(key).is_none();
                *is_served = is_only && cluster.serves(key);
                is_only
            });
        }
    }

    /// Counts the keys of some requests, for the live page. A request that the client may not make
    /// is not counted, so clients cannot fill the page with names that they have no permission for.
    #[inline(always)]
    fn sample_keys<T: Decoders, D: Driver<T>>(
        &mut self,
        works: &[Work],
        queued: &[Queued<D::Request<'_>>],
        (connections, server): (&mut Connections<T>, &Server),
    ) {
        if self.sampler.pass(queued.len()) {
            let spans = &self.spans;
            let is_permitted = |at: usize| {
                let Queued { work, request, .. } = &queued[at];
                let connection = connections.get(works[*work].connection);
                connection.is_some_and(|it| D::is_permitted(request, it, server, spans))
            };
            self.sampler.sample(queued.len(), is_permitted, |at, each| {
                D::keys(&queued[at].request, spans, |key| each(key));
            });
        }
    }

    fn execute<T: Decoders, D: Driver<T>>(
        &mut self,
        works: &[Work],
        queued: &mut [Queued<D::Request<'_>>],
        resources: &mut Resources<'_, '_, T>,
    ) {
        let Resources { connections, session, server, memcache, disk, shared, .. } = resources;
        let short_of_memory = &mut resources.short_of_memory;
        let mut guard = session.guard();
        let permit = BatchPermit::begin(server.cluster.as_deref());
        let is_permitted = permit.is_held();
        memcache.flush_if_due(&guard);
        let cluster = server.cluster.as_deref().filter(|_| is_permitted);
        self.prefetch::<T, D>(queued, server, &guard);
        if let Some(cluster) = cluster {
            self.check_slots::<T, D>(queued, (server, cluster));
        }
        self.sample_keys::<T, D>(works, queued, (connections, server));
        let (mut replies_len, mut any_held) = (0, false);
        // What was found about slots holds until the guard is renewed.
        let mut is_first_guard = true;
        for Queued { work, end, request, keys, on_disk, is_served } in &*queued {
            let number = works[*work].connection;
            let keeps_items = disk.is_some() && D::changes_several(request);
            if *shared && D::is_exclusive(request) || keeps_items {
                send_value_refs(&mut self.unsent, (connections, server), &guard, permit);
                guard.begin_exclusive();
                is_first_guard = false;
            }
            let is_held = any_held && self.progress[*work].held.is_some();
            let connection = connections.get(number).filter(|it| it.is_open() && !is_held);
            let Some(mut connection) = connection else {
                guard.end_exclusive();
                continue;
            };
            let before = connection.unsent_len();
            let spans = &self.spans;
            let admission = Admission::of_request(is_permitted, *is_served && is_first_guard);
            let known = Known { admission, prefetched: prefetched(&self.keys, keys) };
            let first = Context { guard: &guard, connection, server, memcache, spans, known };
            if first_attempt::<T, D>(request, first, (*on_disk, keeps_items)).is_err() {
                send_value_refs(&mut self.unsent, (connections, server), &guard, permit);
                is_first_guard = false;
                let Some(found) = connections.get(number) else { continue };
                connection = found;
                let (disk, forwards) = (*disk, resources.forwards);
                let executed = self.progress[*work].executed;
                let input = Input::new(works[*work].bytes(resources.reactor), executed..*end);
                let mut retry =
                    Retry { number, input, server, memcache, disk, forwards, spans, is_permitted };
                if let Some(held) = retry.run::<T, D>(request, connection, &mut guard) {
                    self.progress[*work].hold(held);
                    any_held = true;
                    guard.end_exclusive();
                    continue;
                }
            }
            connection.note_executed();
            guard.keep_items(false);
            guard.end_exclusive();
            self.progress[*work].executed = *end;
            replies_len += connection.unsent_len().saturating_sub(before);
            self.note_output((number, connection), (server, permit, short_of_memory), &guard);
        }
        self.mean_reply_len = replies_len / queued.len();
        send_value_refs(&mut self.unsent, (connections, server), &guard, permit);
        if !permit.has_held() {
            abort_all(queued.iter().map(|queued| works[queued.work].connection), connections);
        }
    }

    /// Sends long replies of a connection. Counts them at once, since a batch may produce many.
    #[inline(always)]
    fn note_output<T: Decoders>(
        &mut self,
        (number, connection): (Number, &mut Connection<T>),
        (server, permit, short_of_memory): (&Server, BatchPermit<'_>, &mut bool),
        guard: &Guard<'_>,
    ) {
        if connection.client.zero_copy.has_value_refs() && permit.has_held() {
            send_or_list(&mut self.unsent, number, connection, *short_of_memory, guard);
        }
        connection.note_output(*short_of_memory);
        if connection.blocked || connection.has_grown() {
            server.hold(connection.count_memory());
            *short_of_memory = server.is_short_of_memory();
        }
    }
}

/// Returns the prefetched keys of one request.
#[inline(always)]
fn prefetched<'k>(keys: &'k [BatchKey], range: &Range<u32>) -> &'k [BatchKey] {
    keys.get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// Closes the connections of a batch, whose replies must not leave: another node may have served
/// the slots before they were executed.
#[cold]
fn abort_all<T: Decoders>(numbers: impl Iterator<Item = Number>, connections: &mut Connections<T>) {
    for number in numbers {
        if let Some(connection) = connections.get(number) {
            connection.abort();
        }
    }
}

/// Sends the value references of a connection if its output is long, and otherwise lists the
/// connection.
#[inline(always)]
fn send_or_list<T: Decoders>(
    unsent: &mut Vec<Number>,
    number: Number,
    connection: &mut Connection<T>,
    short_of_memory: bool,
    guard: &Guard<'_>,
) {
    // A blocked connection must have no value references: they would be sent without an event that
    // unblocks it.
    if connection.is_output_long(short_of_memory)
        || connection.client.zero_copy.has_enough_value_refs()
    {
        connection.send_value_refs(guard);
    } else if unsent.last() != Some(&number) {
        unsent.push(number);
    }
}

/// Sends the value references of these connections, since the guard is about to end.
fn send_value_refs<T: Decoders>(
    unsent: &mut Vec<Number>,
    (connections, server): (&mut Connections<T>, &Server),
    guard: &Guard<'_>,
    permit: BatchPermit<'_>,
) {
    let may_send = unsent.is_empty() || permit.has_held();
    for number in unsent.drain(..) {
        let Some(connection) = connections.get(number) else { continue };
        if !may_send {
            connection.abort();
        } else if connection.client.zero_copy.has_value_refs() {
            connection.send_value_refs(guard);
            if connection.has_grown() {
                server.hold(connection.count_memory());
            }
        }
    }
}
