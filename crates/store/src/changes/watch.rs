//! Watching: the changes of a range, in order, from a number on.

use super::backoff::Backoff;
use super::follower::{Follower, Waited};
use super::record::{Change, Record};
use crate::clock::deadline;
use crate::codec::integers::{key_of, number_of};
use crate::error::{Error, Result};
use crate::pages::TableId;
use crate::range::Range;
use crate::read::{Read, ReadTxn};
use crate::rows::Rows;
use crate::scan::Scan;
use crate::store::{Shared, Store};
use crate::stream::{BatchStream, Next, Source};
use crate::table::Table;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Changes of a batch, at most, and about their bytes.
const BATCH_CHANGES: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;
/// Changes that are passed over before it is looked whether anybody still wants them.
const PASS_AT_ONCE: usize = 65_536;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the next change that is committed.
    Now,
    /// With the change after the one of this number: after [`Change::sequence`], or after
    /// [`Read::sequence`] of what was scanned.
    After(u64),
    /// With the oldest change that is kept.
    Oldest,
}

/// Committed changes of one table or all of them, within a range of keys, in order. Nothing that
/// watches slows writers down: a watch that is slower than changes are let go of ends with
/// [`Error::FellBehind`].
pub struct Watch {
    shared: Arc<Shared>,
    follower: Arc<Follower>,
    /// What this watch is called by the follower.
    name: u64,
    table: Option<String>,
    range: Range,
    /// The number of the change that it wants next.
    next: u64,
    /// The last transaction that it has looked at.
    transaction: u64,
    backoff: Backoff,
    /// When a stream looks again after a look that failed.
    retry_at: Option<Instant>,
    /// How often it read the store.
    #[cfg(test)]
    pub(super) looks: u64,
}

impl Store {
    /// Watches the changes of a table, or of all, within a range of keys. The store must keep
    /// changes: [`keep_changes`](Self::keep_changes).
    pub fn watch(&self, table: Option<&Table>, range: Range, start: Start) -> Result<Watch> {
        let shared = &self.0;
        let follower = shared.follower()?;
        shared.refresh_own()?;
        let (oldest, newest) = {
            let txn = self.read()?;
            let kept = kept(&txn)?;
            (kept, txn.sequence()?)
        };
        let next = match start {
            Start::Now => newest + 1,
            Start::After(sequence) => sequence.saturating_add(1),
            Start::Oldest => oldest,
        };
        let table = table.map(|table| table.name().to_owned());
        let (shared, name) = (Arc::clone(shared), follower.name());
        let (backoff, retry_at) = (Backoff::default(), None);
        let watch = Watch {
            shared,
            follower,
            name,
            table,
            range,
            next,
            transaction: 0,
            backoff,
            retry_at,
            #[cfg(test)]
            looks: 0,
        };
        watch.check(oldest, newest)?;
        Ok(watch)
    }

    /// Returns how many reads of the store failed for watches of this process, in a way that may
    /// pass, since the store was opened: those of the thread that notices commits, and those of the
    /// watches themselves.
    pub fn watch_failures(&self) -> u64 {
        self.0.watch_failures.load(Ordering::Relaxed)
    }

    /// Returns the counter of [`watch_failures`](Self::watch_failures), for metrics: it can be read
    /// after the store was closed, and does not keep it open.
    pub fn watch_failure_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.watch_failures)
    }
}

/// The oldest change that is kept.
fn kept(txn: &ReadTxn<'_>) -> Result<u64> {
    let view = txn.view();
    let kept = view.shared.own()?.map(|own| own.kept(&view)).transpose()?;
    kept.flatten().map(|kept| kept.oldest).ok_or(Error::NoChangesKept)
}

impl Watch {
    /// The number of the change that it wants next. Another watch can go on from here, with
    /// [`Start::After`] this less one.
    pub fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Waits for the next changes, for at most `time`, and returns them: those of whole
    /// transactions or parts of long ones. Returns `None` if nothing was committed by then.
    ///
    /// Where the store cannot be read for a while, for example because all slots of readers are in
    /// use, the watch waits on and tries again after 10 ms to 2 s, each delay twice the one before.
    /// [`Store::watch_failures`] counts it.
    ///
    /// # Errors
    ///
    /// [`Error::FellBehind`] if changes were dropped before they were read, [`Error::Closed`] if
    /// the store was closed, and the cause if the store cannot be read when `time` is over. After
    /// an error of the last kind, such as [`Error::ReadersFull`], the watch can be polled again.
    pub fn next_within(&mut self, time: Duration) -> Result<Option<Vec<Change>>> {
        let deadline = deadline(time);
        loop {
            let waited = match self.look(&AtomicBool::new(false)) {
                Ok(changes) if !changes.is_empty() => return Ok(Some(changes)),
                Ok(_) => self.follower.wait(self.transaction, deadline)?,
                Err(error) => {
                    let now = Instant::now();
                    if !error.is_transient() || now >= deadline {
                        return Err(error);
                    }
                    self.follower.pause_until(deadline.min(now + self.backoff.next_delay()))?;
                    Waited::Moved
                }
            };
            match waited {
                Waited::Moved => {}
                Waited::TimedOut => return Ok(None),
                // The thread could not read the store lately: this look finds changes, or fails.
                Waited::Unknown => {
                    let changes = self.look(&AtomicBool::new(false))?;
                    return Ok((!changes.is_empty()).then_some(changes));
                }
            }
        }
    }

    /// Returns the changes as a stream of batches, which threads of the store read.
    ///
    /// The stream ends only with an error that stays: [`Error::Closed`], [`Error::FellBehind`],
    /// [`Error::NoChangesKept`] or damage. Where the store cannot be read for a while, it tries
    /// again, as [`next_within`](Self::next_within) does.
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

    /// Returns what was committed by now, or the first of it; nothing if there is nothing new.
    /// Counts failures that pass.
    fn look(&mut self, given_up: &AtomicBool) -> Result<Vec<Change>> {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let found = self.look_past_others(given_up);
        match &found {
            Ok(_) => self.backoff.reset(),
            Err(error) if error.is_transient() => {
                self.shared.watch_failures.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        found
    }

    /// Passes over changes of other tables, in several transactions if there are many.
    fn look_past_others(&mut self, given_up: &AtomicBool) -> Result<Vec<Change>> {
        loop {
            let before = self.next;
            let changes = self.look_once()?;
            let passed_all = self.next == before || self.next - before < PASS_AT_ONCE as u64;
            if !changes.is_empty() || passed_all || given_up.load(Ordering::Relaxed) {
                return Ok(changes);
            }
        }
    }

    fn look_once(&mut self) -> Result<Vec<Change>> {
        let shared = Arc::clone(&self.shared);
        let txn = ReadTxn::borrowed(&shared)?;
        let view = txn.view();
        let (oldest, newest) = (kept(&txn)?, txn.sequence()?);
        self.check(oldest, newest)?;
        let Some(own) = shared.own()? else { return Err(Error::NoChangesKept) };
        let from = Range::all().from(key_of(self.next));
        let entries = Rows::of_own(view, TableId::CHANGES, own.changes, &Scan::new(from))?;
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for (passed, entry) in entries.enumerate() {
            if changes.len() == BATCH_CHANGES || bytes >= BATCH_BYTES || passed == PASS_AT_ONCE {
                // The rest comes with the next look, which must not wait for a commit.
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
        // Numbers that were not kept are behind, too.
        self.next = self.next.max(newest + 1);
        self.transaction = txn.id();
        Ok(changes)
    }
}

impl Source for Watch {
    type Batch = Vec<Change>;

    fn next(&mut self, given_up: &AtomicBool) -> Result<Next<Vec<Change>>> {
        // The task may be woken for other reasons before the delay is over.
        let changes = if self.retry_at.is_some_and(|retry_at| Instant::now() < retry_at) {
            Vec::new()
        } else {
            let looked = self.look(given_up);
            let has_failed = looked.as_ref().is_err_and(Error::is_transient);
            self.retry_at = has_failed.then(|| Instant::now() + self.backoff.next_delay());
            if has_failed { Vec::new() } else { looked? }
        };
        if changes.is_empty() {
            // No thread would wake the task.
            self.follower.check()?;
            return Ok(Next::NotYet);
        }
        Ok(Next::Batch(changes))
    }

    fn wake_when_more(&mut self, waker: Waker) {
        match self.retry_at {
            Some(retry_at) => self.follower.wake_to_retry(retry_at, self.name, waker),
            None => self.follower.wake_after(self.transaction, self.name, waker),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.follower.forget(self.name);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("next", &self.next).finish_non_exhaustive()
    }
}
