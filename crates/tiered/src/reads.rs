//! Reads that operations requested, the operations that wait for each, and the threads that perform
//! them.

use crate::planned_read::{Parsed, PlannedRead};
use crate::promote::{LONG_READ, Promoted, ReadRecord, count_read, finish_read};
use crate::shared::Shared;
use crate::waiting::{RoomWaiters, Waiter, Waiting};
use nuthatch_cache::{OnDisk, Session};
use nuthatch_tier::{AlignedBuffer, ReadError};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How often a promotion frees memory before it waits.
const MAX_RENEWALS: usize = 8;

/// How often an item that was read waits for memory before the operation is repeated without it: up
/// to half a second.
const MAX_WAITS: usize = 50;

/// Maximum length of the buffer that a reader thread keeps between two reads.
const MAX_KEPT_BUFFER: usize = 64 << 10;

/// Reads that are to be done.
#[derive(Default)]
struct Queue {
    next: VecDeque<OnDisk>,
    /// The operations that wait for each place that is queued or being read.
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

    /// Requests a read of the threads. Calls `waiter` when it is done.
    pub(crate) fn request(&self, on_disk: OnDisk, waiter: &Arc<dyn Waiter>, token: u64) {
        if self.join(on_disk, waiter, token) {
            self.queue(on_disk);
        }
    }

    /// Adds an operation that waits for a read. Returns whether it is the first: then the caller
    /// must [`queue`](Self::queue) the read, or perform it and [`finish`](Self::finish) it.
    pub(crate) fn join(&self, on_disk: OnDisk, waiter: &Arc<dyn Waiter>, token: u64) -> bool {
        let waiting = (Arc::clone(waiter), token);
        let mut queue = self.lock();
        if queue.is_closed {
            drop(queue);
            waiter.ready(token);
            return false;
        }
        if let Some(all) = queue.waiting.get_mut(&on_disk.place()) {
            all.push(waiting);
            return false;
        }
        queue.waiting.insert(on_disk.place(), vec![waiting]);
        drop(queue);
        self.count.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Lets a thread perform a read, for the first operation that waits for it.
    pub(crate) fn queue(&self, on_disk: OnDisk) {
        let mut queue = self.lock();
        if queue.is_closed {
            drop(queue);
            return self.finish(on_disk);
        }
        queue.next.push_back(on_disk);
        drop(queue);
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

    /// Calls the waiters of a read that is done.
    pub(crate) fn finish(&self, on_disk: OnDisk) {
        for (waiter, token) in self.take(on_disk) {
            waiter.ready(token);
        }
    }

    /// Ends a read, and returns the operations that wait for it.
    pub(crate) fn take(&self, on_disk: OnDisk) -> Vec<Waiting> {
        let waiting = self.lock().waiting.remove(&on_disk.place()).unwrap_or_default();
        self.count.fetch_sub(1, Ordering::Relaxed);
        waiting
    }

    /// Ends the reader threads once the queue is empty.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.not_empty.notify_all();
    }
}

/// Runs the reader threads until the queue is closed. They have one session for all promotions,
/// since each session keeps segments free.
pub(crate) fn run(shared: &Shared, reads: &Reads, room_waiters: &RoomWaiters, readers: usize) {
    let Ok(session) = shared.cache.session() else {
        return shared.state.fail(&"no session is free");
    };
    let session = Mutex::new(session);
    thread::scope(|scope| {
        for number in 1..readers {
            let session = &session;
            let name = format!("nuthatch-read-{number}");
            let builder = thread::Builder::new().name(name).stack_size(256 << 10);
            let work = move || read_all(shared, (reads, room_waiters), session);
            if builder.spawn_scoped(scope, work).is_err() {
                // The system has no more threads. This one and those before it read.
                break;
            }
        }
        read_all(shared, (reads, room_waiters), &session);
    });
}

/// Performs reads until the queue is closed.
fn read_all(
    shared: &Shared,
    (reads, room_waiters): (&Reads, &RoomWaiters),
    session: &Mutex<Session<'_>>,
) {
    let mut buffer = AlignedBuffer::new(0);
    while let Some(on_disk) = reads.next() {
        let in_progress = ReadInProgress { reads, on_disk };
        // The operation is repeated in any case. If the item found no memory, it requests the read
        // again.
        match read_one((shared, room_waiters), session, on_disk, &mut buffer) {
            (Promoted::Done, _) | (Promoted::NoMemory, 0..=LONG_READ) => {}
            (Promoted::NoMemory, _) => room_waiters.add_long_item(in_progress.take()),
        }
        if buffer.len() > MAX_KEPT_BUFFER {
            buffer = AlignedBuffer::new(0);
        }
    }
}

/// A read in progress, which is finished on drop: the operations that wait for it continue also
/// after a panic.
struct ReadInProgress<'a> {
    reads: &'a Reads,
    on_disk: OnDisk,
}

impl ReadInProgress<'_> {
    /// Ends the read, and returns the operations that wait for it.
    fn take(self) -> Vec<Waiting> {
        let waiting = self.reads.take(self.on_disk);
        std::mem::forget(self);
        waiting
    }
}

impl Drop for ReadInProgress<'_> {
    fn drop(&mut self) {
        self.reads.finish(self.on_disk);
    }
}

/// Reads the record of an item and promotes it. Returns whether it did, and the length of the read.
/// Long reads are performed one at a time, with a buffer that is freed after it. The others keep
/// what they have read while they wait for memory: writers that wait, too, would otherwise take all
/// that is freed before the item is read again.
fn read_one(
    (shared, room_waiters): (&Shared, &RoomWaiters),
    session: &Mutex<Session<'_>>,
    on_disk: OnDisk,
    buffer: &mut AlignedBuffer,
) -> (Promoted, usize) {
    let finish = |read: Result<ReadRecord<'_>, ReadError>, max_waits| {
        let lock = || session.lock().unwrap_or_else(PoisonError::into_inner);
        let record = count_read(shared, read, || lock().guard().points_to(on_disk));
        let promote = || finish_read(shared, &mut lock(), on_disk, record.as_ref(), MAX_RENEWALS);
        let mut promoted = promote();
        for _ in 0..max_waits {
            if promoted == Promoted::Done || !room_waiters.wait() {
                break;
            }
            promoted = promote();
        }
        promoted
    };
    let Some(mut read) = PlannedRead::new(&shared.reader, on_disk) else {
        return (finish(Err(ReadError::Missing), 0), 0);
    };
    loop {
        let len = read.len();
        let one_at_a_time = || shared.long_reads.lock().unwrap_or_else(PoisonError::into_inner);
        let _long_read = (len > LONG_READ).then(one_at_a_time);
        let mut long_buffer = AlignedBuffer::new(0);
        let buffer = if len > LONG_READ { &mut long_buffer } else { &mut *buffer };
        let filled = shared.reader.fill(&read.plan, buffer);
        match read.parse(filled.map(|()| &buffer.as_slice()[..len])) {
            Parsed::Begin(longer) => read = longer,
            Parsed::Ended(record) => {
                let max_waits = if len > LONG_READ { 0 } else { MAX_WAITS };
                return (finish(record, max_waits), len);
            }
        }
    }
}
