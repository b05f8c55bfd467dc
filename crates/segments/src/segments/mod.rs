//! `Segments`: a folder that this process has open. The other modules add its operations.

mod access;
mod current_index;
mod open_files;
mod write;

pub(crate) use current_index::open_index;

use crate::folder::Folder;
use crate::folder::settings::Settings;
use crate::index::list::IndexList;
use crate::lock::{TableLock, TimedMutex};
use crate::options::Options;
use crate::segment::OpenSettings;
use crate::segment::appender::Appender;
use crate::stats::Counters;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A folder of segments. Threads of a process share it, and processes share the folder.
pub struct Segments {
    pub(crate) folder: Folder,
    pub(crate) options: Options,
    pub(crate) opening: OpenSettings,
    pub(crate) indexes: IndexList,
    /// Whether the folder could only be read at the last check: see [`Segments::check_writable`].
    pub(crate) is_denied: AtomicBool,
    /// Whether the last operation that needed exclusive access did not get it: see
    /// [`Segments::folder_guard_for_put`].
    pub(crate) is_lock_missed: AtomicBool,
    /// Number of words that may still find no space before growth of the index is tried again.
    pub(crate) growth_pause: AtomicU32,
    /// The segment that this process appends to. Locked briefly, never while a segment is
    /// reclaimed. A thread that locks both locks `exclusive` first.
    pub(crate) appender: Mutex<Option<Appender>>,
    /// The state of the thread that has exclusive access to the folder.
    pub(crate) exclusive: TimedMutex<ExclusiveState>,
    pub(crate) counters: Counters,
    /// The file of fetch locks, and the process that opened it.
    pub(crate) fetch_locks: Mutex<Option<(u32, Arc<File>)>>,
    /// Number of segments that are open for reading.
    pub(crate) open_count: AtomicUsize,
    /// The slot at which the search for a segment to close continues.
    pub(crate) clock_hand: AtomicUsize,
}

/// The state of the thread that has exclusive access to the folder.
#[derive(Default)]
pub(crate) struct ExclusiveState {
    /// The segment that receives records that eviction moves.
    pub(crate) move_appender: Option<Appender>,
    /// The file for the table lock, and the process that opened it: a forked process that used it
    /// would share the lock of its parent.
    lock: Option<(u32, Arc<File>)>,
    /// Segments that this process began since it compared the table with the folder. `None` if it
    /// has not.
    pub(crate) segments_since_repair: Option<u32>,
    /// The last known settings.
    pub(crate) settings: Option<Settings>,
    /// Bytes of the folder and of files other than segments and the index, at the last comparison.
    pub(crate) other_bytes: u64,
}

impl ExclusiveState {
    /// Waits for the table lock. Returns `None` if another process still has it.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn lock_table(
        &mut self,
        folder: &Folder,
        patience: Duration,
    ) -> std::io::Result<Option<TableLock>> {
        let process_id = std::process::id();
        let file = match &self.lock {
            Some((owner, file)) if *owner == process_id => file.clone(),
            _ => {
                let file = Arc::new(folder.open_again()?);
                self.lock = Some((process_id, file.clone()));
                file
            }
        };
        TableLock::acquire(&file, patience)
    }
}

impl Segments {
    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns whether the folder was removed since it was opened. This process can still read the
    /// segments that it has open; other processes cannot find them.
    pub fn is_removed(&self) -> bool {
        self.folder.is_removed()
    }

    /// Returns the options that the folder was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn lock_appender(&self) -> MutexGuard<'_, Option<Appender>> {
        self.appender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records whether an operation got exclusive access.
    pub(crate) fn record_lock_result(&self, is_locked: bool) {
        self.is_lock_missed.store(!is_locked, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Segments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments").field("path", &self.path()).finish_non_exhaustive()
    }
}
