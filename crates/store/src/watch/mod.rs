//! Watches: the changes of a range of keys, in order, from a sequence number on.

mod backoff;
mod commit_thread;
#[cfg(test)]
mod follower_tests;

use crate::changes::{Change, Record};
use crate::codec::integers::{key_of, number_of};
use crate::deadline::deadline;
use crate::error::{Error, Result};
use crate::follower::{Follower, Waited};
use crate::pages::TableId;
use crate::range::Range;
use crate::read::rows::Rows;
use crate::read::{Read, ReadTxn};
use crate::scan::Scan;
use crate::scans::stream::{BatchStream, Next, Source};
use crate::shared::Shared;
use crate::store::Store;
use crate::table::Table;
use backoff::Backoff;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Maximum number of changes in a batch, and their approximate maximum bytes.
const BATCH_CHANGES: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;
/// Maximum number of changes of other tables that one transaction skips. Between two such
/// transactions, cancellation is checked.
const MAX_SKIPPED: usize = 65_536;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the next change that is committed.
    Now,
    /// After the change with this sequence number: [`Change::sequence`], or [`Read::sequence`] of a
    /// scan.
    After(u64),
    /// With the oldest kept change.
    Oldest,
}

/// Committed changes of one table or all tables, within a range of keys, in order. A watch does not
/// slow writers down: if the store drops changes before the watch has read them, the watch fails
/// with [`Error::FellBehind`].
pub struct Watch {
    shared: Arc<Shared>,
    follower: Arc<Follower>,
    /// The ID of this watch within the follower.
    id: u64,
    table: Option<String>,
    range: Range,
    /// The number of the next change to return.
    next: u64,
    /// The last transaction that was read.
    transaction: u64,
    backoff: Backoff,
    /// When a stream repeats a failed read.
    retry_at: Option<Instant>,
    /// The number of reads of the store.
    #[cfg(test)]
    pub(super) reads: u64,
}

impl Store {
    /// Starts a watch of the changes within a range of keys, in a table, or in all tables if
    /// `table` is `None`. The store must keep changes: [`keep_changes`](Self::keep_changes).
    ///
    /// # Errors
    ///
    /// [`Error::NoChangesKept`] if the store keeps no changes, [`Error::FellBehind`] if changes
    /// after `start` were dropped, [`Error::Ahead`] if `start` is after the newest change, and
    /// errors of a read transaction: see [`read`](Self::read).
    pub fn watch(&self, table: Option<&Table>, range: Range, start: Start) -> Result<Watch> {
        let shared = &self.0;
        let follower = commit_thread::follower(shared)?;
        shared.refresh_system_tables()?;
        let (oldest, newest) = {
            let txn = self.read()?;
            let oldest = oldest_kept(&txn)?;
            (oldest, txn.sequence()?)
        };
        let next = match start {
            Start::Now => newest + 1,
            Start::After(sequence) => sequence.saturating_add(1),
            Start::Oldest => oldest,
        };
        let table = table.map(|table| table.name().to_owned());
        let (shared, id) = (Arc::clone(shared), follower.new_id());
        let (backoff, retry_at) = (Backoff::default(), None);
        let watch = Watch {
            shared,
            follower,
            id,
            table,
            range,
            next,
            transaction: 0,
            backoff,
            retry_at,
            #[cfg(test)]
            reads: 0,
        };
        watch.check(oldest, newest)?;
        Ok(watch)
    }

    /// Returns the number of temporary failures to read the store for watches of this process,
    /// since the store was opened. Each failed read is retried.
    pub fn watch_failures(&self) -> u64 {
        self.0.watch_failures.load(Ordering::Relaxed)
    }

    /// Returns the counter of [`watch_failures`](Self::watch_failures), for metrics. It can be read
    /// after the store was closed, and does not keep the store open.
    pub fn watch_failure_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.watch_failures)
    }
}

/// Returns the number of the oldest kept change.
fn oldest_kept(txn: &ReadTxn<'_>) -> Result<u64> {
    let view = txn.view();
    let kept =
        view.shared.system_tables()?.map(|system_tables| system_tables.kept(&view)).transpose()?;
    kept.flatten().map(|kept| kept.oldest).ok_or(Error::NoChangesKept)
}

impl Watch {
    /// Returns the sequence number of the next change that this watch can return. Another watch
    /// continues with [`Start::After`] this number minus one.
    pub fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Waits for at most `time`, and returns the next changes, in batches of up to 1024 changes or
    /// about 1 MiB; a long transaction can span several batches. Returns `None` if no change
    /// arrived in time.
    ///
    /// If the store cannot be read temporarily, for example because all reader slots are in use,
    /// the watch retries after a delay of 10 ms, which doubles with each failure up to 2 s.
    /// [`Store::watch_failures`] counts the failures.
    ///
    /// # Errors
    ///
    /// [`Error::FellBehind`] if changes were dropped before they were read, [`Error::Closed`] if
    /// the store was closed, and the cause if the store cannot be read when `time` has passed.
    /// After an error of the last kind, such as [`Error::ReadersFull`], this can be called again.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<Vec<Change>>> {
        let deadline = deadline(time);
        loop {
            let waited = match self.read_changes(&AtomicBool::new(false)) {
                Ok(changes) if !changes.is_empty() => return Ok(Some(changes)),
                Ok(_) => self.follower.wait(self.transaction, deadline)?,
                Err(error) => {
                    let now = Instant::now();
                    if !error.is_transient() || now >= deadline {
                        return Err(error);
                    }
                    self.follower.pause_until(deadline.min(now + self.backoff.next_delay()))?;
                    Waited::Committed
                }
            };
            match waited {
                Waited::Committed => {}
                Waited::TimedOut => return Ok(None),
                // The thread could not read the store lately: this read finds changes or fails.
                Waited::Unknown => {
                    let changes = self.read_changes(&AtomicBool::new(false))?;
                    return Ok((!changes.is_empty()).then_some(changes));
                }
            }
        }
    }

    /// Returns the changes as a stream of batches, which threads of the store read.
    ///
    /// The stream ends only with a permanent error: [`Error::Closed`], [`Error::FellBehind`],
    /// [`Error::NoChangesKept`] or damage. Temporary errors are retried, as by
    /// [`next_within`](Self::next_within).
    pub fn into_stream(self) -> BatchStream<Vec<Change>> {
        BatchStream::new(Arc::clone(&self.shared), self, false)
    }

    fn check(&self, oldest: u64, newest: u64) -> Result<()> {
        if self.next < oldest {
            return Err(Error::FellBehind { wanted: self.next, oldest });
        }
        if self.next > newest.saturating_add(1) {
            return Err(Error::Ahead { after: self.next - 1, newest });
        }
        Ok(())
    }

    /// Returns the changes that were committed and not read yet, or the first of them; empty if
    /// there are none. Counts temporary failures.
    fn read_changes(&mut self, cancelled: &AtomicBool) -> Result<Vec<Change>> {
        #[cfg(test)]
        {
            self.reads += 1;
        }
        let found = self.read_and_skip(cancelled);
        match &found {
            Ok(_) => self.backoff.reset(),
            Err(error) if error.is_transient() => {
                self.shared.watch_failures.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        found
    }

    /// Skips changes of other tables, in several transactions if there are many.
    fn read_and_skip(&mut self, cancelled: &AtomicBool) -> Result<Vec<Change>> {
        loop {
            let before = self.next;
            let changes = self.read_once()?;
            let is_at_end = self.next == before || self.next - before < MAX_SKIPPED as u64;
            if !changes.is_empty() || is_at_end || cancelled.load(Ordering::Relaxed) {
                return Ok(changes);
            }
        }
    }

    fn read_once(&mut self) -> Result<Vec<Change>> {
        let shared = Arc::clone(&self.shared);
        let txn = ReadTxn::borrowed(&shared)?;
        let view = txn.view();
        let (oldest, newest) = (oldest_kept(&txn)?, txn.sequence()?);
        self.check(oldest, newest)?;
        let Some(system_tables) = shared.system_tables()? else { return Err(Error::NoChangesKept) };
        let from = Range::all().from(key_of(self.next));
        let entries =
            Rows::of_system_table(view, TableId::CHANGES, system_tables.changes, &Scan::new(from))?;
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for (skipped, entry) in entries.enumerate() {
            if changes.len() == BATCH_CHANGES || bytes >= BATCH_BYTES || skipped == MAX_SKIPPED {
                // The next read returns the rest, and must not wait for a commit.
                return Ok(changes);
            }
            let (key, record) = entry?;
            let number = number_of(key).ok_or_else(|| {
                Error::decode("the number of a change", "a key of another length")
            })?;
            let found = Record::read(record)?;
            self.next = number + 1;
            let wanted = self.table.as_deref().is_none_or(|table| table == found.table);
            if wanted && self.range.contains(found.key) {
                bytes += record.len();
                changes.push(found.to_change(number));
            }
        }
        // Changes that were not kept are skipped, too.
        self.next = self.next.max(newest + 1);
        self.transaction = txn.id();
        Ok(changes)
    }
}

impl Source for Watch {
    type Batch = Vec<Change>;

    fn next(&mut self, cancelled: &AtomicBool) -> Result<Next<Vec<Change>>> {
        // The task may be woken for other reasons before the delay has passed.
        let changes = if self.retry_at.is_some_and(|retry_at| Instant::now() < retry_at) {
            Vec::new()
        } else {
            let found = self.read_changes(cancelled);
            let has_failed = found.as_ref().is_err_and(Error::is_transient);
            self.retry_at = has_failed.then(|| Instant::now() + self.backoff.next_delay());
            if has_failed { Vec::new() } else { found? }
        };
        if changes.is_empty() {
            // If the thread has ended, it would never wake the task.
            self.follower.check()?;
            return Ok(Next::NotYet);
        }
        Ok(Next::Batch(changes))
    }

    fn wake_when_more(&mut self, waker: Waker) {
        match self.retry_at {
            Some(retry_at) => self.follower.wake_to_retry(retry_at, self.id, waker),
            None => self.follower.wake_after(self.transaction, self.id, waker),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.follower.forget(self.id);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("next", &self.next).finish_non_exhaustive()
    }
}
