//! Acquiring exclusive access to a folder: [`FolderGuard`]s, and the index that is in use.
//!
//! A process usually holds the table lock for milliseconds, but a process that is stopped while it
//! holds the lock keeps it. So an operation waits at most [`Options::patience`]. After a put did
//! not get access, later puts try without waiting, until one of them gets access. Operations that a
//! caller requests (`prune`, `pin`) wait each time.
//!
//! [`Options::patience`]: crate::Options::patience

use crate::error::{Error, Result};
use crate::guard::FolderGuard;
use crate::index::Index;
use crate::layout::index as at;
use crate::lock::TimedGuard;
use crate::segments::{ExclusiveState, Segments};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Segments that a process begins before it compares the table with the folder again.
const SEGMENTS_BETWEEN_REPAIRS: u32 = 64;

impl Segments {
    /// Waits for exclusive access on behalf of a put: up to the patience of the options, and not at
    /// all if the last operation did not get it. Returns `None` if another process or thread still
    /// has it.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Segments::folder_guard`], except [`Error::Busy`].
    pub(crate) fn folder_guard_for_put(&self) -> Result<Option<FolderGuard<'_>>> {
        self.folder_guard_within(|| {
            let is_missed = self.is_lock_missed.load(Ordering::Relaxed);
            if is_missed { Duration::ZERO } else { self.options.patience }
        })
    }

    /// Waits for exclusive access, up to the patience of the options.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if another process or thread still has it, [`Error::ReadOnly`] if
    /// this process may not write to the folder, and any error of repairing it.
    pub(crate) fn folder_guard(&self) -> Result<FolderGuard<'_>> {
        let guard = self.folder_guard_within(|| self.options.patience)?;
        guard.ok_or_else(|| Error::Busy { path: self.path().to_owned() })
    }

    /// Waits for exclusive access up to `patience`, which may change while a thread waits.
    fn folder_guard_within(
        &self,
        patience: impl Fn() -> Duration,
    ) -> Result<Option<FolderGuard<'_>>> {
        let began = Instant::now();
        let guard = match self.exclusive.lock(patience()) {
            // The patience may be zero by now: the thread that had access may have failed to get
            // the table lock.
            Some(exclusive) => {
                self.guard_with(exclusive, patience().saturating_sub(began.elapsed()))?
            }
            None => None,
        };
        self.record_lock_result(guard.is_some());
        Ok(guard)
    }

    /// Takes the table lock for a thread that excludes the other threads, and repairs the folder if
    /// necessary.
    fn guard_with<'a>(
        &'a self,
        mut exclusive: TimedGuard<'a, ExclusiveState>,
        patience: Duration,
    ) -> Result<Option<FolderGuard<'a>>> {
        self.check_writable()?;
        let locked = exclusive.lock_table(&self.folder, patience);
        let lock = locked.map_err(|e| Error::io("lock", self.path(), e))?;
        let Some(lock) = lock else { return Ok(None) };
        let found = self.reopen()?;
        let is_due =
            exclusive.segments_since_repair.is_none_or(|since| since >= SEGMENTS_BETWEEN_REPAIRS);
        let settings = self.load_settings(found, &mut exclusive, is_due)?;
        let index = match found {
            Some(index) => index,
            None => self.rebuild(&mut exclusive, settings)?,
        };
        // The process that copied the index has died.
        if index.is_copied() {
            index.set_retired(at::IN_USE);
        }
        let is_dirty = index.word(at::DIRTY).load(Ordering::Acquire) != 0;
        let mut guard = FolderGuard {
            segments: self,
            index,
            settings,
            exclusive,
            moving_slot: None,
            is_beginning: false,
            spare_file: None,
            table_lock: Some(lock),
        };
        if is_dirty || is_due || !index.table().is_valid() {
            guard.repair()?;
        }
        Ok(Some(guard))
    }

    /// Returns the index that is in use. `None` if it is damaged and another process or thread is
    /// rebuilding it.
    #[inline]
    pub(crate) fn index(&self) -> Option<&Index> {
        match self.indexes.latest() {
            Some(index) if index.is_in_use() => Some(index),
            _ => self.index_again(),
        }
    }

    /// Opens the index that replaced the last one, or rebuilds it.
    #[cold]
    fn index_again(&self) -> Option<&Index> {
        if let Ok(Some(index)) = self.reopen() {
            return Some(index);
        }
        // Readers do not wait: if another thread or process rebuilds the index, this lookup is a
        // miss.
        let exclusive = self.exclusive.lock(Duration::ZERO)?;
        let guard = self.guard_with(exclusive, Duration::ZERO).ok().flatten()?;
        Some(guard.index)
    }
}

#[cfg(test)]
mod tests {
    use crate::work_counters::waits;
    use crate::{Error, NotKeptReason, Options, Outcome, Part, Record, Segments, checksum};
    use nuthatch_testing::process::stop;
    use rustix::fs::{FlockOperation, flock};
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    const FOLDER: &str = "NUTHATCH_TEST_LOCKED_FOLDER";
    const LOCKED: &str = "the folder is locked";

    /// A stopped process that holds the table lock of a folder. It is killed when this is dropped.
    struct Holder(Child);

    impl Holder {
        fn of(folder: &Path) -> Self {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(["--exact", "acquire::tests::child_locks_a_folder", "--nocapture"]);
            let child = command.env(FOLDER, folder).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut holder = Self(child.spawn().expect("a child"));
            let mut lines = BufReader::new(holder.0.stdout.take().expect("its output")).lines();
            assert!(lines.any(|line| line.expect("a line").contains(LOCKED)));
            stop(&holder.0);
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
        // Waits until it is killed.
        let _ = std::io::stdin().read_line(&mut String::new());
    }

    /// Stores a record that is long enough for another segment to be needed soon.
    fn put(segments: &Segments, number: u64) -> Outcome {
        let data = vec![1; 200_000];
        let parts = [Part { end: 200_000, checksum: checksum(&data) }];
        let (name, label) = ([3; 16], &b""[..]);
        let record = Record { name, first: number, label, expiry: 0, parts: &parts, data: &data };
        segments.put(&record).expect("a put")
    }

    #[test]
    fn a_stopped_process_that_has_the_lock_delays_one_put_and_not_all_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new().limit(4 << 20).segment_len(256 << 10).min_free(0);
        let options = options.patience(Duration::from_millis(20));
        let segments = Segments::open(folder.path(), &options).expect("a folder");
        for round in 0..2 {
            let holder = Holder::of(folder.path());
            let (before, first) = (waits(), round * 1000);
            // Records that fit into the open segment need no lock.
            let missed =
                (first..first + 100).find(|number| put(&segments, *number) != Outcome::Kept);
            assert!(missed.is_some(), "nothing is evicted without the lock");
            let waited = waits();
            assert!(waited > before, "the first put that needs the lock waits for it");
            for number in first + 500..first + 600 {
                assert_eq!(put(&segments, number), Outcome::NotKept(NotKeptReason::Busy));
            }
            assert_eq!(waits(), waited, "the others do not");
            let error = segments.prune(None).expect_err("the folder is locked");
            assert!(matches!(error, Error::Busy { .. }), "{error}");
            assert!(waits() > waited, "what a user calls for waits each time");
            assert_eq!(put(&segments, first + 600), Outcome::NotKept(NotKeptReason::Busy));
            drop(holder);
            // The first put after the release succeeds. The next round waits for the lock again.
            assert_eq!(put(&segments, first + 601), Outcome::Kept);
        }
    }
}
