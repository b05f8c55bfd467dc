//! Fetches blocks. One task for each request stores the blocks that arrive and wakes the readers
//! that wait for them.

use crate::counts::Count;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::not_kept::NotKept;
use crate::origin::{Body, RangeResponse};
use crate::reading::version::{CachedVersion, Version};
use crate::retry::{Attempts, Fault};
use bytes::Bytes;
use nuthatch_chunks::{FetchLock, Fetched, Flight, Lookup};
use nuthatch_trace_context::{Instrument, Span, note_error};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The first and the longest interval at which a fetch checks whether another process has stored
/// the blocks.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A request in progress, as its readers see it.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// Flights of the blocks that have not arrived, in order.
    flights: Mutex<VecDeque<Flight>>,
    /// Whether all readers that started the request have dropped their handles.
    abandoned: AtomicBool,
    wake: Notify,
    error: Mutex<Option<Error>>,
}

/// A handle to a request. The request ends when the last handle is dropped, unless other readers
/// wait for its blocks.
#[derive(Debug)]
pub(crate) struct FetchHandle(Arc<Request>);

impl FetchHandle {
    /// Returns why the request failed.
    pub(crate) fn error(&self) -> Option<Error> {
        lock(&self.0.error).clone()
    }
}

impl Drop for FetchHandle {
    fn drop(&mut self) {
        self.0.abandoned.store(true, SeqCst);
        self.0.wake.notify_one();
    }
}

impl Request {
    /// Returns whether no reader waits for the blocks that have not arrived.
    fn is_unwanted(&self) -> bool {
        self.abandoned.load(SeqCst) && !lock(&self.flights).iter().any(Flight::is_awaited)
    }

    /// Waits until no reader needs the request. `Fetch::work` also checks this after each block.
    async fn abandoned_by_all(&self) {
        while !self.is_unwanted() {
            self.wake.notified().await;
        }
    }
}

/// The task that executes a request.
struct Fetch {
    version: Arc<Version>,
    request: Arc<Request>,
}

/// Starts to fetch the blocks of `flights`, which are in order.
pub(crate) fn start_fetch(version: &Arc<Version>, flights: Vec<Flight>) -> Arc<FetchHandle> {
    let request = Arc::new(Request { flights: Mutex::new(flights.into()), ..Request::default() });
    let share = Arc::new(FetchHandle(request.clone()));
    let fetch = Fetch { version: version.clone(), request: request.clone() };
    let address = &*version.opened.address;
    let span = nuthatch_trace_context::span!("origin fetch", "client", url.full = address);
    if let Err(error) = version.engine.spawn(fetch.run().instrument(span)) {
        *lock(&request.error) = Some(error);
    }
    share
}

impl Drop for Fetch {
    /// Drops the flights, which wakes their readers: no reader waits for blocks that will not
    /// arrive.
    fn drop(&mut self) {
        let flights = std::mem::take(&mut *lock(&self.request.flights));
        drop(flights);
    }
}

/// A block of which some bytes have arrived.
struct PartialBlock {
    range: Range<u64>,
    bytes: Arc<[u8]>,
    filled: u64,
}

impl Fetch {
    async fn run(self) {
        let Some(cached) = self.version.cached() else { return };
        let mut abandoned_by_all = pin!(self.request.abandoned_by_all());
        let mut work = pin!(self.work(cached));
        let ended = poll_fn(|context| {
            if abandoned_by_all.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            work.as_mut().poll(context)
        });
        let ended = ended.await;
        note_error(&Span::current(), &ended);
        if let Err(error) = ended {
            self.version.failed(&error);
            self.version.engine.note_failure(&cached.key, &error);
            *lock(&self.request.error) = Some(error);
        }
    }

    async fn work(&self, cached: &CachedVersion) -> Result<()> {
        let version = &self.version;
        let settings = &version.engine.settings;
        let mut attempts = Attempts::new(settings, &version.opened.address);
        // Held until the last block is stored.
        let _fetch_lock = self.wait_for_fetch_lock(cached).await;
        let mut partial = None;
        while let Some(range) = self.wanted(partial.as_ref()) {
            // The semaphore is never closed.
            let permit = version.engine.permits.acquire().await;
            version.count(Count::Requests, 1);
            version.count(Count::Retries, u64::from(attempts.is_retry()));
            let ended = self.receive(cached, range, &mut partial, &mut attempts).await;
            drop(permit);
            if self.request.is_unwanted() {
                return Ok(());
            }
            if let Err(fault) = ended {
                let retry_delay = attempts.failed(fault)?;
                tokio::time::sleep(retry_delay).await;
            }
        }
        Ok(())
    }

    /// Returns the range to request: from the first missing byte to the end of the last missing
    /// block. It may include blocks that are present.
    fn wanted(&self, partial: Option<&PartialBlock>) -> Option<Range<u64>> {
        let flights = lock(&self.request.flights);
        let start = flights.front()?.range().start + partial.map_or(0, |partial| partial.filled);
        Some(start..flights.back()?.range().end)
    }

    /// Takes the fetch lock of the blocks. Waits for other processes that fetch some of them as
    /// long as blocks keep arriving. Returns `None` if they stop arriving, or if the folder does
    /// not support fetch locks.
    async fn wait_for_fetch_lock(&self, cached: &CachedVersion) -> Option<FetchLock> {
        let wait = self.version.engine.fetch_lock_wait(&cached.key);
        let mut retry_delay = MIN_POLL_INTERVAL;
        let mut since = Instant::now();
        loop {
            let (fetch_lock, stored) = self.try_fetch_lock(cached).await;
            let is_locked = matches!(fetch_lock, Ok(None));
            if stored > 0 {
                (since, retry_delay) = (Instant::now(), MIN_POLL_INTERVAL);
            }
            if !is_locked || lock(&self.request.flights).is_empty() {
                return fetch_lock.ok().flatten();
            }
            if since.elapsed() >= wait {
                if !wait.is_zero() {
                    self.version.log_fetch_lock_timeout(cached, wait);
                }
                return None;
            }
            tokio::time::sleep(retry_delay).await;
            retry_delay = (retry_delay * 2).min(MAX_POLL_INTERVAL);
        }
    }

    /// Tries to take the fetch lock of the blocks, then checks which of them have been stored
    /// meanwhile. Returns the lock, and the number of blocks that were stored. `Ok(None)`: another
    /// process has it.
    async fn try_fetch_lock(
        &self,
        cached: &CachedVersion,
    ) -> (std::io::Result<Option<FetchLock>>, usize) {
        let version = self.version.clone();
        let ranges: Vec<_> = lock(&self.request.flights).iter().map(Flight::range).collect();
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return (Ok(None), 0);
        };
        let all = first.start..last.end;
        let look = cached.tasks.run(move |chunks| {
            let cached = version.cached();
            let fetch_lock = cached.map(|cached| chunks.try_fetch_lock(&cached.key, all));
            let blocks = cached.and_then(|cached| version.blocks(chunks, cached));
            let there = |range: &Range<u64>| {
                let missing = blocks.as_ref().map(|blocks| blocks.missing(range.clone()));
                matches!(missing, Some(Ok(missing)) if missing.is_empty())
            };
            let present = ranges.into_iter().map(|range| there(&range)).collect::<Vec<bool>>();
            (fetch_lock.unwrap_or(Ok(None)), present)
        });
        let (fetch_lock, present) = look.await;
        let mut flights = lock(&self.request.flights);
        let before = std::mem::take(&mut *flights);
        let count = before.len();
        for (flight, present) in before.into_iter().zip(present) {
            if present {
                flight.finish(Fetched::Stored);
            } else {
                flights.push_back(flight);
            }
        }
        (fetch_lock, count - flights.len())
    }

    /// Sends one request and stores the blocks of its response.
    async fn receive(
        &self,
        cached: &CachedVersion,
        range: Range<u64>,
        partial: &mut Option<PartialBlock>,
        attempts: &mut Attempts<'_>,
    ) -> Result<(), Fault> {
        let version = &self.version;
        let response = version.origin.get(range, &version.opened);
        let RangeResponse { range: promised, mut body } =
            version.engine.with_read_timeout(response).await?;
        let mut at = promised.start;
        loop {
            let next = next_of(&mut body, version);
            let Some(bytes) = version.engine.with_read_timeout(next).await? else {
                // An origin may send fewer bytes than requested if the response says so.
                let early = || Err(Fault::broken("the response ended early"));
                return if at < promised.end { early() } else { Ok(()) };
            };
            if self.fill(cached, at, &bytes, partial, attempts).await || self.request.is_unwanted()
            {
                return Ok(());
            }
            at += bytes.len() as u64;
        }
    }

    /// Copies the missing bytes from `bytes`, which begin at offset `at`. Returns whether no more
    /// bytes are missing.
    async fn fill(
        &self,
        cached: &CachedVersion,
        at: u64,
        bytes: &[u8],
        partial: &mut Option<PartialBlock>,
        attempts: &mut Attempts<'_>,
    ) -> bool {
        let mut from = at;
        let end = at + bytes.len() as u64;
        loop {
            if partial.is_none() {
                let Some(range) = lock(&self.request.flights).front().map(Flight::range) else {
                    return true;
                };
                let len = (range.end - range.start) as usize;
                let bytes = std::iter::repeat_n(0, len).collect();
                *partial = Some(PartialBlock { range, bytes, filled: 0 });
            }
            let Some(block) = partial.as_mut() else { return true };
            let next = block.range.start + block.filled;
            from = from.max(next);
            if from >= end {
                return false;
            }
            if from == next
                && let Some(out) = Arc::get_mut(&mut block.bytes)
            {
                let len = (end - from).min(block.range.end - from);
                let (source, target) = ((from - at) as usize, block.filled as usize);
                let len = len as usize;
                out[target..target + len].copy_from_slice(&bytes[source..source + len]);
                block.filled += len as u64;
                from += len as u64;
            }
            if block.range.start + block.filled == block.range.end
                && let Some(block) = partial.take()
            {
                attempts.progress();
                self.store(cached, block).await;
            }
        }
    }

    /// Stores a block in the cache and passes it to the readers that wait for it.
    async fn store(&self, cached: &CachedVersion, block: PartialBlock) {
        let (version, bytes) = (self.version.clone(), block.bytes.clone());
        let start = block.range.start;
        let put = cached.tasks.run_put(move |chunks| {
            let blocks = version.cached().and_then(|cached| version.blocks(chunks, cached));
            let Some(stored) = blocks.map(|blocks| blocks.put(start, &bytes)) else {
                return Some(NotKept::Folder);
            };
            match stored {
                Ok(stored) => stored.not_kept.map(NotKept::from),
                // The cache has other bytes for this validator: those of the origin are delivered.
                Err(nuthatch_chunks::Error::Conflict { .. }) => Some(NotKept::Conflict),
                Err(_) => Some(NotKept::Folder),
            }
        });
        let not_kept = put.await;
        let stored = not_kept.is_none();
        if let Some(cause) = not_kept {
            self.version.count_not_kept(cause, 1);
        }
        match not_kept {
            Some(NotKept::Conflict) => self.version.log_not_kept(NotKept::Conflict),
            // A removed folder is created again, with a warning, when the next object is opened.
            Some(_) if cached.tasks.chunks().is_removed() => {}
            cause => self.version.engine.note_put(cause),
        }
        let flight = lock(&self.request.flights).pop_front();
        if let Some(flight) = flight {
            if stored && !flight.is_awaited() {
                self.version.note_prefetched(start / cached.block_len);
            }
            flight.finish(Fetched::Bytes(block.bytes));
        }
    }
}

/// Returns the next bytes of a body, and counts them.
pub(crate) async fn next_of(body: &mut Body, version: &Version) -> Result<Option<Bytes>, Fault> {
    let next = body.next().await?;
    version.count(Count::Fetched, next.as_ref().map_or(0, |bytes| bytes.len() as u64));
    Ok(next)
}

/// Returns the bytes of a lookup, if it found all of them without an error.
pub(crate) fn found<T>(lookup: nuthatch_chunks::Result<Lookup<T>>) -> Option<T> {
    lookup.ok().and_then(Lookup::found)
}
