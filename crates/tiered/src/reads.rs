//! Reads that operations requested: who waits for each, and the threads that perform them.

use crate::promote::{Promoted, finish_read};
use crate::shared::Shared;
use crate::waiting::{RoomWaiters, Waiter, Waiting};
use nuthatch_cache::{OnDisk, Session};
use nuthatch_tier::{AlignedBuffer, Place, ReadError};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Length of a read above which reader threads perform one at a time, with a buffer that is freed
/// after it.
const LONG_READ: usize = 1 << 20;

/// How often a promotion frees memory before the operation is repeated without the item.
const MAX_RENEWALS: usize = 8;

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

    /// Requests a read of the threads. Calls `waiter` when it is done.
    pub(crate) fn request(&self, on_disk: OnDisk, waiter: &Arc<dyn Waiter>, token: u64) {
        if self.claim(on_disk, waiter, token) {
            self.queue(on_disk);
        }
    }

    /// Adds one that waits for a read. Returns whether the caller must see to the read, since it is
    /// the first: [`queue`](Self::queue) it, or perform it and [`finish`](Self::finish) it.
    pub(crate) fn claim(&self, on_disk: OnDisk, waiter: &Arc<dyn Waiter>, token: u64) -> bool {
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

    /// Lets a thread perform a read that was claimed.
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

    /// Calls all that wait for a read that is done.
    pub(crate) fn finish(&self, on_disk: OnDisk) {
        for (waiter, token) in self.take(on_disk) {
            waiter.ready(token);
        }
    }

    /// Ends a read, and returns those that wait for it.
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
            if builder
                .spawn_scoped(scope, move || read_all(shared, (reads, room_waiters), session))
                .is_err()
            {
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
        let unfinished = Unfinished { reads, on_disk };
        let len = read_one(shared, session, on_disk, &mut buffer);
        std::mem::forget(unfinished);
        match len {
            None => reads.finish(on_disk),
            // The operation is repeated once memory was freed, and requests the read again.
            Some(len) => room_waiters.add_item(len, reads.take(on_disk)),
        }
    }
}

/// A read in progress. Those that wait for it continue also after a panic.
struct Unfinished<'a> {
    reads: &'a Reads,
    on_disk: OnDisk,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.reads.finish(self.on_disk);
    }
}

/// Reads the record of an item and promotes it. Returns the length of the read if the item found no
/// memory.
fn read_one(
    shared: &Shared,
    session: &Mutex<Session<'_>>,
    on_disk: OnDisk,
    buffer: &mut AlignedBuffer,
) -> Option<usize> {
    let lock = || session.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut plan) = shared.reader.read_plan(Place::unpack(on_disk.place(), 0)) else {
        finish_read(shared, &mut lock(), on_disk, Err(ReadError::Missing), MAX_RENEWALS);
        return None;
    };
    let mut bytes_before = 0;
    loop {
        let one_at_a_time = || shared.long_reads.lock().unwrap_or_else(PoisonError::into_inner);
        let _long_read = (plan.len() > LONG_READ).then(one_at_a_time);
        let mut long_buffer = AlignedBuffer::new(0);
        let buffer = if plan.len() > LONG_READ { &mut long_buffer } else { &mut *buffer };
        let read = shared.reader.fill(&plan, buffer);
        let parsed = read.and_then(|()| plan.parse_any(&buffer.as_slice()[..plan.len()]));
        if let Err(ReadError::Short { needed }) = parsed {
            bytes_before += plan.len();
            plan = plan.extended(needed);
            continue;
        }
        let found = parsed.map(|record| (record, plan.id(), bytes_before + plan.len()));
        let promoted = finish_read(shared, &mut lock(), on_disk, found, MAX_RENEWALS);
        return (promoted == Promoted::NoMemory).then_some(plan.len());
    }
}
