//! Requests that need items from disk, or that wait until memory was freed by writing to disk.

use super::connection::Connection;
use super::driver::{Decoders, Driver};
use super::reactor::{Number, Waker};
use crate::span::Span;
use nuthatch_cache::{Guard, OnDisk};
use nuthatch_tiered::{TieredCache, Waiter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often a request waits for memory that is freed by writing to disk.
pub(crate) const MAX_ROOM_WAITS: u32 = 10_000;

/// How often a request reads items from disk before it fails.
const MAX_ATTEMPTS: u32 = 100;
/// The same for a request that still needs more than this many items.
const MAX_LONG_ATTEMPTS: u32 = 3;
const LONG_READS: usize = 256;

/// The tokens of reads that are done, for one worker.
struct DoneReads {
    tokens: Mutex<Vec<u64>>,
    waker: Waker,
}

impl DoneReads {
    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter for DoneReads {
    fn ready(&self, token: u64) {
        let mut tokens = self.lock();
        let was_empty = tokens.is_empty();
        tokens.push(token);
        drop(tokens);
        if was_empty {
            self.waker.wake();
        }
    }
}

/// The disk tier, as one worker uses it.
pub(crate) struct Disk {
    tiered: Arc<TieredCache>,
    done: Arc<DoneReads>,
    waiter: Arc<dyn Waiter>,
}

impl Disk {
    /// Creates it for the worker with this waker.
    pub(crate) fn new(tiered: Arc<TieredCache>, waker: Waker) -> Self {
        let done = Arc::new(DoneReads { tokens: Mutex::default(), waker });
        let waiter = Arc::clone(&done) as Arc<dyn Waiter>;
        Self { tiered, done, waiter }
    }

    /// Takes the connections for which something is done: their numbers and serial numbers.
    pub(crate) fn take_done(&self) -> impl Iterator<Item = (Number, u32)> + use<> {
        let tokens = std::mem::take(&mut *self.done.lock());
        tokens.into_iter().map(|token| (token as Number, (token >> 32) as u32))
    }

    /// Reads what a request needs that was not executed. Returns `false` if it was repeated too
    /// often: the items that it needs do not fit in memory together.
    pub(crate) fn read<T: Decoders>(
        &self,
        number: Number,
        connection: &mut Connection<T>,
        needed: &[OnDisk],
    ) -> bool {
        let is_long = needed.len() > LONG_READS;
        let max = if is_long { MAX_LONG_ATTEMPTS } else { MAX_ATTEMPTS };
        if connection.disk_attempts >= max {
            return false;
        }
        connection.disk_attempts += 1;
        connection.disk_waits = needed.len() as u32;
        for on_disk in needed {
            self.tiered.read(*on_disk, &self.waiter, token(number, connection));
        }
        true
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
