//! How long operations wait for the lock of the folder.
//!
//! A holder of the lock keeps it for milliseconds. A process that was stopped while it had the lock
//! keeps it for any time. So an operation waits no longer than [`Options::patience`]. After a put
//! did not get the lock, later puts do not wait: each tries the lock once, until one of them gets
//! it. Operations that a user calls for (`prune`, `pin`) wait each time.
//!
//! [`Options::patience`]: crate::Options::patience

use crate::error::{Error, Result};
use crate::guard::Turn;
use crate::index::Index;
use crate::layout::index as at;
use crate::lock::TimedGuard;
use crate::segments::{Alone, Segments};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Segments that are begun before a process compares the table with the folder again.
const SETTLE_EVERY: u32 = 64;

impl Segments {
    /// Waits for the lock of the folder on behalf of a put: no longer than the patience of the
    /// options, and not at all if the last operation did not get it. Returns `None` if another
    /// process or thread still has it.
    pub(crate) fn turn(&self) -> Result<Option<Turn<'_>>> {
        self.turn_within(|| {
            let is_missed = self.is_lock_missed.load(Ordering::Relaxed);
            if is_missed { Duration::ZERO } else { self.options.patience }
        })
    }

    /// Waits for the lock of the folder, no longer than the patience of the options.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if another process or thread still has it.
    pub(crate) fn own_turn(&self) -> Result<Turn<'_>> {
        let turn = self.turn_within(|| self.options.patience)?;
        turn.ok_or_else(|| Error::Busy { path: self.path().to_owned() })
    }

    fn turn_within(&self, patience: impl Fn() -> Duration) -> Result<Option<Turn<'_>>> {
        let began = Instant::now();
        let turn = match self.alone.lock(patience()) {
            // The patience may be less now: the thread that had `alone` may have missed the lock.
            Some(alone) => self.turn_with(alone, patience().saturating_sub(began.elapsed()))?,
            None => None,
        };
        self.note_lock(turn.is_some());
        Ok(turn)
    }

    /// Records whether an operation got the lock of the folder.
    pub(crate) fn note_lock(&self, is_locked: bool) {
        self.is_lock_missed.store(!is_locked, Ordering::Relaxed);
    }

    fn turn_with<'a>(
        &'a self,
        mut alone: TimedGuard<'a, Alone>,
        patience: Duration,
    ) -> Result<Option<Turn<'a>>> {
        self.check_writable()?;
        let taken = alone.lock(&self.folder, patience);
        let lock = taken.map_err(|e| Error::io("lock", self.path(), e))?;
        let Some(lock) = lock else { return Ok(None) };
        let found = self.reopen()?;
        let due = alone.settled.is_none_or(|since| since >= SETTLE_EVERY);
        let settings = self.settings_now(found, &mut alone, due)?;
        let index = match found {
            Some(index) => index,
            None => self.rebuild(&mut alone, settings)?,
        };
        // Whoever copied it had the lock, and died.
        if index.is_copied() {
            index.retire(at::IN_USE);
        }
        let dirty = index.word(at::DIRTY).load(Ordering::Acquire) != 0;
        let mut turn = Turn {
            of: self,
            index,
            settings,
            alone,
            moving: None,
            beginning: false,
            spare: None,
            lock: Some(lock),
        };
        if dirty || due || !index.table().whole() {
            turn.settle()?;
        }
        Ok(Some(turn))
    }

    /// Returns the index that is in use. `None` if it is damaged and another process or thread is
    /// making another one.
    #[inline]
    pub(crate) fn index(&self) -> Option<&Index> {
        match self.indexes.last() {
            Some(index) if index.in_use() => Some(index),
            _ => self.index_again(),
        }
    }

    #[cold]
    fn index_again(&self) -> Option<&Index> {
        if let Ok(Some(index)) = self.reopen() {
            return Some(index);
        }
        // No reader waits: if another thread or process is at it, this read is a miss.
        let alone = self.alone.lock(Duration::ZERO)?;
        let turn = self.turn_with(alone, Duration::ZERO).ok().flatten()?;
        Some(turn.index)
    }
}

#[cfg(test)]
mod tests {
    use crate::work_counters::waits;
    use crate::{Error, Options, Outcome, Part, Reason, Record, Segments, checksum};
    use rustix::fs::{FlockOperation, flock};
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    const FOLDER: &str = "NUTHATCH_TEST_LOCKED_FOLDER";
    const LOCKED: &str = "the folder is locked";

    /// A process that has the lock of a folder, and was stopped. It is killed when this is dropped.
    struct Holder(Child);

    impl Holder {
        fn of(folder: &Path) -> Self {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(["--exact", "acquire::tests::child_locks_a_folder", "--nocapture"]);
            let child = command.env(FOLDER, folder).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut holder = Self(child.spawn().expect("a child"));
            let mut lines = BufReader::new(holder.0.stdout.take().expect("its output")).lines();
            assert!(lines.any(|line| line.expect("a line").contains(LOCKED)));
            let process = Pid::from_child(&holder.0);
            kill_process(process, Signal::STOP).expect("a signal");
            let (_, status) =
                waitpid(Some(process), WaitOptions::UNTRACED).expect("a child").expect("it waits");
            assert!(status.stopped());
            holder
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            self.0.kill().expect("a signal");
            self.0.wait().expect("its end");
        }
    }

    #[test]
    fn child_locks_a_folder() {
        let Some(folder) = std::env::var_os(FOLDER) else { return };
        let folder = File::open(folder).expect("a folder");
        flock(&folder, FlockOperation::LockExclusive).expect("a lock");
        println!("{LOCKED}");
        // Until it is killed.
        let _ = std::io::stdin().read_line(&mut String::new());
    }

    /// Puts so much that another segment is needed.
    fn put(segments: &Segments, number: u64) -> Outcome {
        let data = vec![1; 200_000];
        let parts = [Part { end: 200_000, sum: checksum(&data) }];
        let (name, label) = ([3; 16], &b""[..]);
        let record = Record { name, first: number, label, expiry: 0, parts: &parts, data: &data };
        segments.put(&record).expect("a put")
    }

    #[test]
    fn a_stopped_process_that_has_the_lock_delays_one_put_and_not_all_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new().limit(4 << 20).segment_len(256 << 10).least_free(0);
        let options = options.patience(Duration::from_millis(20));
        let segments = Segments::open(folder.path(), &options).expect("a folder");
        for round in 0..2 {
            let holder = Holder::of(folder.path());
            let (before, first) = (waits(), round * 1000);
            // What fits into the open segment needs no lock.
            let missed =
                (first..first + 100).find(|number| put(&segments, *number) != Outcome::Kept);
            assert!(missed.is_some(), "nothing is evicted without the lock");
            let waited = waits();
            assert!(waited > before, "the first put that needs the lock waits for it");
            for number in first + 500..first + 600 {
                assert_eq!(put(&segments, number), Outcome::NotKept(Reason::Busy));
            }
            assert_eq!(waits(), waited, "the others do not");
            let error = segments.prune(None).expect_err("the folder is locked");
            assert!(matches!(error, Error::Busy { .. }), "{error}");
            assert!(waits() > waited, "what a user calls for waits each time");
            assert_eq!(put(&segments, first + 600), Outcome::NotKept(Reason::Busy));
            drop(holder);
            // At once, without any wait in between: and the next holder is waited for again.
            assert_eq!(put(&segments, first + 601), Outcome::Kept);
        }
    }
}
