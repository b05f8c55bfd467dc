//! Fetching blocks: one task for each request, which keeps what comes and tells those who wait.

use crate::counts::Count;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::not_kept::NotKept;
use crate::origin::{Body, Ranged};
use crate::reading::version::{Kept, Version};
use crate::retry::{Attempts, Fault};
use bytes::Bytes;
use nuthatch_chunks::{FetchLock, Fetched, Flight, Lookup};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long to wait before looking again whether another process is done: at first, and at most.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(50);

/// A request that is under way, as those see it who had it made.
#[derive(Debug, Default)]
pub(crate) struct Request {
    /// For blocks that have not come yet, in order.
    tickets: Mutex<VecDeque<Flight>>,
    /// Nobody is left of those who had it made.
    abandoned: AtomicBool,
    wake: Notify,
    error: Mutex<Option<Error>>,
}

/// A share in a request. When the last one goes, and nobody else waits for its blocks, it ends.
#[derive(Debug)]
pub(crate) struct Share(Arc<Request>);

impl Share {
    /// Why the request failed.
    pub(crate) fn error(&self) -> Option<Error> {
        lock(&self.0.error).clone()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.abandoned.store(true, SeqCst);
        self.0.wake.notify_one();
    }
}

impl Request {
    /// Whether nobody wants what has not come yet.
    fn unwanted(&self) -> bool {
        self.abandoned.load(SeqCst) && !lock(&self.tickets).iter().any(Flight::is_awaited)
    }

    /// Ends when nobody wants the request any more; `Fetch::work` looks again now and then.
    async fn given_up(&self) {
        while !self.unwanted() {
            self.wake.notified().await;
        }
    }
}

/// The task of a request.
struct Fetch {
    version: Arc<Version>,
    request: Arc<Request>,
}

/// Requests the blocks of some tickets of a version, which are in order.
pub(crate) fn request(version: &Arc<Version>, tickets: Vec<Flight>) -> Arc<Share> {
    let request = Arc::new(Request { tickets: Mutex::new(tickets.into()), ..Request::default() });
    let share = Arc::new(Share(request.clone()));
    let fetch = Fetch { version: version.clone(), request: request.clone() };
    if let Err(error) = version.engine.spawn(fetch.run()) {
        *lock(&request.error) = Some(error);
    }
    share
}

impl Drop for Fetch {
    /// Whatever ends the task, nobody waits for what does not come.
    fn drop(&mut self) {
        let tickets = std::mem::take(&mut *lock(&self.request.tickets));
        drop(tickets);
    }
}

/// A block of which some bytes have come.
struct Begun {
    range: Range<u64>,
    bytes: Arc<[u8]>,
    filled: u64,
}

impl Fetch {
    async fn run(self) {
        let Some(kept) = self.version.kept() else { return };
        let mut given_up = pin!(self.request.given_up());
        let mut work = pin!(self.work(kept));
        let ended = poll_fn(|context| {
            if given_up.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            work.as_mut().poll(context)
        });
        if let Err(error) = ended.await {
            self.version.failed(&error);
            self.version.engine.note_failure(&kept.key, &error);
            *lock(&self.request.error) = Some(error);
        }
    }

    async fn work(&self, kept: &Kept) -> Result<()> {
        let version = &self.version;
        let settings = &version.engine.settings;
        let mut attempts = Attempts::new(settings, &version.opened.address);
        // Held until the last block is kept.
        let _claimed = self.claim(kept).await;
        let mut begun = None;
        while let Some(range) = self.wanted(begun.as_ref()) {
            // Never closed.
            let permit = version.engine.permits.acquire().await;
            version.count(Count::Requests, 1);
            version.count(Count::Retries, u64::from(attempts.again()));
            let ended = self.receive(kept, range, &mut begun, &mut attempts).await;
            drop(permit);
            if self.request.unwanted() {
                return Ok(());
            }
            if let Err(fault) = ended {
                let pause = attempts.failed(fault)?;
                tokio::time::sleep(pause).await;
            }
        }
        Ok(())
    }

    /// What has still to be asked for, with what is there already between.
    fn wanted(&self, begun: Option<&Begun>) -> Option<Range<u64>> {
        let tickets = lock(&self.request.tickets);
        let start = tickets.front()?.range().start + begun.map_or(0, |begun| begun.filled);
        Some(start..tickets.back()?.range().end)
    }

    /// Waits for other processes that fetch some of the blocks, as long as blocks keep coming.
    /// `None` if they do not, or if nothing can be claimed in the folder.
    async fn claim(&self, kept: &Kept) -> Option<FetchLock> {
        let wait = self.version.engine.claim_wait(&kept.key);
        let mut pause = FIRST_LOOK;
        let mut since = Instant::now();
        loop {
            let (claimed, came) = self.try_claim(kept).await;
            let taken = matches!(claimed, Ok(None));
            if came > 0 {
                (since, pause) = (Instant::now(), FIRST_LOOK);
            }
            if !taken || lock(&self.request.tickets).is_empty() {
                return claimed.ok().flatten();
            }
            if since.elapsed() >= wait {
                if !wait.is_zero() {
                    self.version.claim_timed_out(kept, wait);
                }
                return None;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_LOOK);
        }
    }

    /// Claims the blocks among processes, then looks which of them have come meanwhile, and how
    /// many.
    async fn try_claim(&self, kept: &Kept) -> (std::io::Result<Option<FetchLock>>, usize) {
        let version = self.version.clone();
        let ranges: Vec<_> = lock(&self.request.tickets).iter().map(Flight::range).collect();
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return (Ok(None), 0);
        };
        let all = first.start..last.end;
        let look = kept.tasks.run(move |chunks| {
            let kept = version.kept();
            let claimed = kept.map(|kept| chunks.try_fetch_lock(&kept.key, all));
            let blocks = kept.and_then(|kept| version.blocks(chunks, kept));
            let there = |range: &Range<u64>| {
                let missing = blocks.as_ref().map(|blocks| blocks.missing(range.clone()));
                matches!(missing, Some(Ok(missing)) if missing.is_empty())
            };
            let present = ranges.into_iter().map(|range| there(&range)).collect::<Vec<bool>>();
            (claimed.unwrap_or(Ok(None)), present)
        });
        let (claimed, present) = look.await;
        let mut tickets = lock(&self.request.tickets);
        let before = std::mem::take(&mut *tickets);
        let count = before.len();
        for (ticket, present) in before.into_iter().zip(present) {
            if present {
                ticket.finish(Fetched::Stored);
            } else {
                tickets.push_back(ticket);
            }
        }
        (claimed, count - tickets.len())
    }

    /// One request, and what comes of it.
    async fn receive(
        &self,
        kept: &Kept,
        range: Range<u64>,
        begun: &mut Option<Begun>,
        attempts: &mut Attempts<'_>,
    ) -> Result<(), Fault> {
        let version = &self.version;
        let asked = version.origin.get(range, &version.opened);
        let Ranged { range: promised, mut body } = version.engine.in_time(asked).await?;
        let mut at = promised.start;
        loop {
            let next = next_of(&mut body, version);
            let Some(bytes) = version.engine.in_time(next).await? else {
                // An origin may answer with less than it was asked for, if it says so.
                let early = || Err(Fault::broken("the answer ended early"));
                return if at < promised.end { early() } else { Ok(()) };
            };
            if self.fill(kept, at, &bytes, begun, attempts).await || self.request.unwanted() {
                return Ok(());
            }
            at += bytes.len() as u64;
        }
    }

    /// Takes what is wanted of bytes that lie from an offset on. Answers whether nothing more is.
    async fn fill(
        &self,
        kept: &Kept,
        at: u64,
        bytes: &[u8],
        begun: &mut Option<Begun>,
        attempts: &mut Attempts<'_>,
    ) -> bool {
        let mut from = at;
        let end = at + bytes.len() as u64;
        loop {
            if begun.is_none() {
                let Some(range) = lock(&self.request.tickets).front().map(Flight::range) else {
                    return true;
                };
                let len = (range.end - range.start) as usize;
                let bytes = std::iter::repeat_n(0, len).collect();
                *begun = Some(Begun { range, bytes, filled: 0 });
            }
            let Some(block) = begun.as_mut() else { return true };
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
                && let Some(block) = begun.take()
            {
                attempts.progress();
                self.keep(kept, block).await;
            }
        }
    }

    /// Puts a block into the cache, and gives it to those who wait.
    async fn keep(&self, kept: &Kept, block: Begun) {
        let (version, bytes) = (self.version.clone(), block.bytes.clone());
        let start = block.range.start;
        let put = kept.tasks.run_put(move |chunks| {
            let blocks = version.kept().and_then(|kept| version.blocks(chunks, kept));
            let Some(stored) = blocks.map(|blocks| blocks.put(start, &bytes)) else {
                return Some(NotKept::Folder);
            };
            match stored {
                Ok(stored) => stored.not_kept.map(NotKept::from),
                // Bytes that differ under one validator: the origin's are delivered.
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
            // A folder that was removed is made again when the next object is opened, with a
            // warning.
            Some(_) if kept.tasks.chunks().is_removed() => {}
            cause => self.version.engine.note_put(cause),
        }
        let ticket = lock(&self.request.tickets).pop_front();
        if let Some(ticket) = ticket {
            if stored && !ticket.is_awaited() {
                self.version.fetched_ahead(start / kept.block_len);
            }
            ticket.finish(Fetched::Bytes(block.bytes));
        }
    }
}

/// The next bytes of a body, counted.
pub(crate) async fn next_of(body: &mut Body, version: &Version) -> Result<Option<Bytes>, Fault> {
    let next = body.next().await?;
    version.count(Count::Fetched, next.as_ref().map_or(0, |bytes| bytes.len() as u64));
    Ok(next)
}

/// What a lookup of bytes found, if it found all of them and nothing went wrong.
pub(crate) fn found<T>(lookup: nuthatch_chunks::Result<Lookup<T>>) -> Option<T> {
    lookup.ok().and_then(Lookup::found)
}
