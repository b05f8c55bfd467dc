//! Reading records for operations, and promoting their items.

use crate::convert::write_of;
use crate::options::Event;
use crate::shared::Shared;
use crate::stats::Counters;
use nuthatch_cache::{Error, OnDisk, Session};
use nuthatch_tier::{AlignedBuffer, Place, ReadError, Record, RecordId};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Who waits for a read: a connection, a task or a thread.
pub trait Waiter: Send + Sync {
    /// Continues what waits with this token: the operation can be repeated. It may need the disk
    /// again. Runs on a thread of the tier, so it must not wait.
    fn ready(&self, token: u64);
}

/// Length of the buffer of a reader thread beyond which it is freed after a read.
const MAX_KEPT_BUFFER: usize = 1 << 20;

/// How often a promotion frees memory before the operation is repeated without the item.
const MAX_RENEWALS: usize = 8;

/// One that waits for a read, and its token.
pub(crate) type Waiting = (Arc<dyn Waiter>, u64);

/// Reads that are to be done.
#[derive(Default)]
struct Queue {
    next: VecDeque<OnDisk>,
    /// Who waits for each place that is queued or being read.
    waiting: HashMap<u64, Vec<Waiting>>,
    is_closed: bool,
}

/// The queue of reads.
#[derive(Default)]
pub(crate) struct Reads {
    queue: Mutex<Queue>,
    not_empty: Condvar,
    /// Reads that are queued or in progress.
    count: AtomicU64,
}

impl Reads {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a read. Calls `waiter` when it is done.
    pub(crate) fn request(&self, on_disk: OnDisk, waiter: &Arc<dyn Waiter>, token: u64) {
        let waiting = (Arc::clone(waiter), token);
        let mut queue = self.lock();
        if queue.is_closed {
            drop(queue);
            return waiter.ready(token);
        }
        if let Some(all) = queue.waiting.get_mut(&on_disk.place()) {
            return all.push(waiting);
        }
        queue.waiting.insert(on_disk.place(), vec![waiting]);
        queue.next.push_back(on_disk);
        drop(queue);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.not_empty.notify_one();
    }

    /// Returns the number of reads that are queued or in progress.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the next read, and waits for it. Returns `None` after [`close`](Self::close).
    fn next(&self) -> Option<OnDisk> {
        let mut queue = self.lock();
        loop {
            if let Some(next) = queue.next.pop_front() {
                return Some(next);
            }
            if queue.is_closed {
                return None;
            }
            queue = self.not_empty.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Calls all that wait for a read that is done.
    fn finish(&self, on_disk: OnDisk) {
        let waiting = self.lock().waiting.remove(&on_disk.place()).unwrap_or_default();
        self.count.fetch_sub(1, Ordering::Relaxed);
        for (waiter, token) in waiting {
            waiter.ready(token);
        }
    }

    /// Ends the reader threads once the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.not_empty.notify_all();
    }
}

/// Runs the reader threads until the queue is closed. They have one session for all promotions,
/// since each session keeps segments free.
pub(crate) fn run(shared: &Shared, reads: &Reads, readers: usize) {
    let Ok(session) = shared.cache.session() else {
        return shared.state.fail(&"no session is free");
    };
    let session = Mutex::new(session);
    thread::scope(|scope| {
        for number in 1..readers {
            let session = &session;
            let name = format!("nuthatch-read-{number}");
            let builder = thread::Builder::new().name(name).stack_size(256 << 10);
            if builder.spawn_scoped(scope, move || read_all(shared, reads, session)).is_err() {
                // The system has no more threads. This one and those before it read.
                break;
            }
        }
        read_all(shared, reads, &session);
    });
}

/// Performs reads until the queue is closed.
fn read_all(shared: &Shared, reads: &Reads, session: &Mutex<Session<'_>>) {
    let mut buffer = AlignedBuffer::new(0);
    while let Some(on_disk) = reads.next() {
        load(shared, session, on_disk, &mut buffer);
        reads.finish(on_disk);
        if buffer.len() > MAX_KEPT_BUFFER {
            buffer = AlignedBuffer::new(0);
        }
    }
}

/// Reads the record of an item and promotes it.
fn load(
    shared: &Shared,
    session: &Mutex<Session<'_>>,
    on_disk: OnDisk,
    buffer: &mut AlignedBuffer,
) {
    let Shared { reader, state, .. } = shared;
    let counters = &state.counters;
    let place = Place::unpack(on_disk.place(), 0);
    let read = reader.read_any(place, buffer);
    Counters::add(&counters.reads, 1);
    let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
    match read {
        Ok((record, id, bytes)) => {
            Counters::add(&counters.read_bytes, bytes as u64);
            promote(shared, &mut session, on_disk, (&record, id));
        }
        // The file was removed meanwhile, and its places with it.
        Err(ReadError::Missing) => {
            session.guard().forget(on_disk);
        }
        Err(error) => {
            Counters::add(&counters.bad_records, 1);
            if let ReadError::Damaged(damage) = error {
                state.report(Event::Damaged(damage));
            }
            session.guard().forget(on_disk);
        }
    }
}

/// Stores the item of a record in memory. If that is not possible, the index does not point to the
/// record afterwards, unless memory is short.
fn promote(
    shared: &Shared,
    session: &mut Session<'_>,
    on_disk: OnDisk,
    (record, id): (&Record<'_>, RecordId),
) {
    let Shared { cache, reader, state, .. } = shared;
    let counters = &state.counters;
    let mut guard = session.guard();
    let current = reader.record_id(Place::unpack(on_disk.place(), 0));
    if current.is_some_and(|current| current != id) {
        // The file was removed during the read, and the place is used for another record. The
        // operation is repeated.
        return;
    }
    let Some(write) = write_of(record).filter(|_| current.is_some()) else {
        guard.forget(on_disk);
        return;
    };
    if record.is_compressed && !(shared.can_decompress)(record.value) {
        Counters::add(&counters.undecodable, 1);
        state.report(Event::Undecodable);
        guard.forget(on_disk);
        return;
    }
    if cache.hash(record.key) != on_disk.hash() {
        Counters::add(&counters.false_matches, 1);
    }
    let item = (record.key, record.value);
    for _ in 0..MAX_RENEWALS {
        match guard.promote(on_disk.place(), id.pack(), item, &write) {
            Ok(true) => return Counters::add(&counters.hits, 1),
            Err(Error::Full) => {
                guard.renew();
            }
            Ok(false) | Err(_) => {
                guard.forget(on_disk);
                return;
            }
        }
    }
    drop(guard);
    // The operation is repeated, and requests the read again.
    thread::yield_now();
}
