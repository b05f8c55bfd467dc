//! A folder of segments, as one process sees it.

mod access;
mod current_index;
mod open_files;

pub(crate) use current_index::open_index;

use crate::folder::Folder;
use crate::folder::settings::Settings;
use crate::index::list::Indexes;
use crate::lock::{FolderLock, TimedMutex};
use crate::options::Options;
use crate::segment::Opening;
use crate::segment::appender::Appender;
use crate::stats::Counts;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A folder of segments. Shared by all threads of a process, as the folder is by processes.
pub struct Segments {
    pub(crate) folder: Folder,
    pub(crate) options: Options,
    pub(crate) opening: Opening,
    pub(crate) indexes: Indexes,
    /// Whether the folder could only be read when this process last looked: see
    /// [`Segments::check_writable`].
    pub(crate) is_denied: AtomicBool,
    /// Whether the last operation that needed the lock of the folder did not get it: see
    /// [`Segments::turn`].
    pub(crate) is_lock_missed: AtomicBool,
    /// Puts that are still to find no room in the index before it is asked again whether it can
    /// grow.
    pub(crate) growth_pause: AtomicU32,
    /// Where this process appends. Held for a moment, never while a segment is reclaimed. Taken
    /// after `alone`.
    pub(crate) writer: Mutex<Option<Appender>>,
    /// What only the thread has that has the folder to itself.
    pub(crate) alone: TimedMutex<Alone>,
    pub(crate) counts: Counts,
    /// Where users lock what they agree on, and which process opened it.
    pub(crate) claims: Mutex<Option<(u32, Arc<File>)>>,
    /// Segments open for reading, and where the search for one to close goes on.
    pub(crate) open: AtomicUsize,
    pub(crate) hand: AtomicUsize,
}

/// What only the thread has that has the folder to itself.
#[derive(Default)]
pub(crate) struct Alone {
    /// Where this process puts what it saves from eviction.
    pub(crate) kept: Option<Appender>,
    /// The folder as it is locked, and by which process: a fork that locked the same open file
    /// would have the lock of its parent.
    lock: Option<(u32, Arc<File>)>,
    /// Whether this process has compared the table with the folder, and how many segments ago.
    pub(crate) settled: Option<u32>,
    /// The settings that held last.
    pub(crate) settings: Option<Settings>,
    /// What the folder counted then beside its segments.
    pub(crate) others: u64,
}

impl Alone {
    /// Waits for the lock of the folder.
    pub(crate) fn lock(
        &mut self,
        folder: &Folder,
        patience: Duration,
    ) -> std::io::Result<Option<FolderLock>> {
        let process = std::process::id();
        let file = match &self.lock {
            Some((owner, file)) if *owner == process => file.clone(),
            _ => {
                let file = Arc::new(folder.open_again()?);
                self.lock = Some((process, file.clone()));
                file
            }
        };
        FolderLock::take(&file, patience)
    }
}

impl Segments {
    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns whether the folder was removed since it was opened. This process can still read the
    /// segments that it has open; other processes cannot find them.
    pub fn is_removed(&self) -> bool {
        self.folder.is_removed()
    }

    /// The options that it was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, Option<Appender>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Segments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments").field("path", &self.path()).finish_non_exhaustive()
    }
}
