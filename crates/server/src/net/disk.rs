//! Requests that need items from disk, or that wait until memory was freed by writing to disk.

use super::connection::Connection;
use super::connections::Connections;
use super::disk_reads::DiskReads;
use super::driver::{Decoders, Driver};
use super::reactor::{Number, Reactor, Waker};
use crate::span::Span;
use nuthatch_cache::{Guard, OnDisk, Session};
use nuthatch_tiered::{TieredCache, Waiter};
use nuthatch_uring::ReadBuffer;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often a request waits for memory that is freed by writing to disk.
pub(crate) const MAX_ROOM_WAITS: u32 = 10_000;

/// How often a request reads items from disk without coming closer to its end before it fails.
const MAX_ATTEMPTS: u32 = 100;
/// The same for a request that needs more than [`MAX_PART`] items.
const MAX_LONG_ATTEMPTS: u32 = 3;

/// A request that needs more items than this is long: a worker executes one at a time.
const LONG_REQUEST: usize = 512;
/// A long request reads this share of the items that it needs at a time, but at least
/// [`LONG_REQUEST`] and at most this many, so that the reads of other requests do not wait long.
const PART_RATIO: usize = 16;
const MAX_PART: usize = 8192;

/// The tokens of reads that are done, for one worker.
struct DoneReads {
    done: Mutex<Done>,
    waker: Waker,
}

#[derive(Default)]
struct Done {
    tokens: Vec<u64>,
    /// Whether the worker takes the tokens soon, so that it need not be woken.
    is_awaited: bool,
}

impl DoneReads {
    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter for DoneReads {
    fn ready(&self, token: u64) {
        let mut done = self.lock();
        let wakes = done.tokens.is_empty() && !done.is_awaited;
        done.tokens.push(token);
        drop(done);
        if wakes {
            self.waker.wake();
        }
    }
}

/// The disk tier, as one worker uses it.
pub(crate) struct Disk {
    tiered: Arc<TieredCache>,
    done: Arc<DoneReads>,
    waiter: Arc<dyn Waiter>,
    /// The reads that the worker performs; `None` if reader threads perform them.
    reads: Option<DiskReads>,
    /// The long request that is being executed. The others wait until it has ended: together, they
    /// may need more than fits in memory, and would evict each other's items.
    long_request: Cell<Option<Waiting>>,
    waiting: RefCell<VecDeque<Waiting>>,
}

/// A connection that waits: its number and its serial number.
type Waiting = (Number, u32);

impl Disk {
    /// Creates it for the worker with this reactor.
    pub(crate) fn new(tiered: Arc<TieredCache>, reactor: &mut Reactor) -> Self {
        let done = Arc::new(DoneReads { done: Mutex::default(), waker: reactor.waker() });
        let waiter = Arc::clone(&done) as Arc<dyn Waiter>;
        let reads = reactor.ring().map(|_| DiskReads::default());
        let (long_request, waiting) = Default::default();
        Self { tiered, done, waiter, reads, long_request, waiting }
    }

    /// Takes the connections for which something is done.
    pub(crate) fn take_done(&self) -> impl Iterator<Item = Waiting> + use<> {
        let Done { tokens, .. } = std::mem::take(&mut *self.done.lock());
        tokens.into_iter().map(|token| (token as Number, (token >> 32) as u32))
    }

    /// Returns whether a long request waits although the one before it has ended.
    pub(crate) fn has_next_long<T: Decoders>(&self, connections: &mut Connections<T>) -> bool {
        !self.waiting.borrow().is_empty() && self.has_long_ended(connections)
    }

    fn has_long_ended<T: Decoders>(&self, connections: &mut Connections<T>) -> bool {
        self.long_request.get().is_some_and(|(number, serial)| {
            let connection = connections.get(number).filter(|it| it.serial == serial);
            connection.is_none_or(|connection| connection.disk_needed == u32::MAX)
        })
    }

    /// Returns the connection whose long request is next, once the one before has ended.
    pub(crate) fn next_long<T: Decoders>(
        &self,
        connections: &mut Connections<T>,
    ) -> Option<Waiting> {
        if !self.has_long_ended(connections) {
            return None;
        }
        loop {
            let next = self.waiting.borrow_mut().pop_front();
            self.long_request.set(next);
            let (number, serial) = next?;
            if connections.get(number).is_some_and(|it| it.serial == serial) {
                return next;
            }
        }
    }

    /// Reads what a request needs that was not executed, or the first part of it. Returns `false`
    /// if it was repeated too often: the items that it needs do not fit in memory together.
    pub(crate) fn read<T: Decoders>(
        &self,
        number: Number,
        connection: &mut Connection<T>,
        needed: &[OnDisk],
    ) -> bool {
        if needed.len() > LONG_REQUEST {
            let own = (number, connection.serial);
            if self.long_request.get().is_some_and(|other| other != own) {
                self.waiting.borrow_mut().push_back(own);
                connection.disk_waits = 1;
                return true;
            }
            self.long_request.set(Some(own));
        }
        let max = if needed.len() > MAX_PART { MAX_LONG_ATTEMPTS } else { MAX_ATTEMPTS };
        let comes_closer = (needed.len() as u32) < connection.disk_needed;
        if !comes_closer && connection.disk_attempts >= max {
            return false;
        }
        if comes_closer {
            connection.disk_needed = needed.len() as u32;
        } else {
            connection.disk_attempts += 1;
        }
        let part = (needed.len() / PART_RATIO).clamp(LONG_REQUEST, MAX_PART);
        let needed = &needed[..needed.len().min(part)];
        connection.disk_waits = needed.len() as u32;
        let token = token(number, connection);
        for on_disk in needed {
            match &self.reads {
                Some(reads) => reads.plan(self.tiered.begin_read(*on_disk, &self.waiter, token)),
                None => self.tiered.read(*on_disk, &self.waiter, token),
            }
        }
        true
    }

    /// Starts the reads that were planned, as many as may be in progress. Returns the change of the
    /// memory of their buffers, in bytes.
    pub(crate) fn start_reads(&mut self, reactor: &mut Reactor) -> io::Result<isize> {
        match (&mut self.reads, reactor.ring()) {
            (Some(reads), Some(ring)) => reads.start(ring),
            _ => Ok(0),
        }
    }

    /// Ends a read that has completed: its item is in memory, and the requests that need it can be
    /// repeated.
    pub(crate) fn end_read(
        &mut self,
        session: &mut Session<'_>,
        number: u32,
        buffer: ReadBuffer,
        len: io::Result<u32>,
    ) {
        let Some(reads) = &mut self.reads else { return };
        // The worker takes what is done after the last read.
        self.done.lock().is_awaited = true;
        let Some(read) = reads.end(number) else { return };
        let bytes = len.map(|len| &buffer.bytes()[..len as usize]);
        reads.plan(self.tiered.end_read(session, read, bytes));
        reads.keep(buffer);
    }

    /// Lets a request that found no memory wait until some was freed, if writers may wait for the
    /// disk. Returns whether it waits.
    pub(crate) fn wait_for_room<T: Decoders>(
        &self,
        number: Number,
        connection: &mut Connection<T>,
    ) -> bool {
        if !self.tiered.waits_for_disk() || connection.memory_waits >= MAX_ROOM_WAITS {
            return false;
        }
        connection.memory_waits += 1;
        connection.disk_waits = 1;
        self.tiered.wait_for_room(&self.waiter, token(number, connection));
        true
    }
}

fn token<T: Decoders>(number: Number, connection: &Connection<T>) -> u64 {
    u64::from(connection.serial) << 32 | u64::from(number)
}

/// Notes the items on disk that a request needs.
#[cold]
pub(crate) fn note_needed<T: Decoders, D: Driver<T>>(
    request: &D::Request<'_>,
    connection: &Connection<T>,
    spans: &[Span],
    guard: &Guard<'_>,
) {
    D::all_keys(request, connection, spans, |key| {
        guard.note_if_on_disk(key);
    });
}
