//! Opening and closing a folder.

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::index::list::IndexList;
use crate::lock::TimedMutex;
use crate::options::{MAX_DEFAULT_SEGMENT_LEN, Options};
use crate::random::boot;
use crate::segment::OpenSettings;
use crate::segments::{ExclusiveState, Segments, open_index};
use crate::stats::Counters;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

impl Segments {
    /// Opens a folder and creates missing files. The time does not depend on the size of the
    /// folder, unless its index is missing or damaged and is rebuilt.
    ///
    /// A folder to which this process may not write, because of its permissions or a read-only
    /// mount, is opened for reading: parts are found, and none are stored. See
    /// [`Segments::is_read_only`] for later changes.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder or its index cannot be opened, or if a newer version wrote
    /// them. Returns [`Error::Options`] if an option is out of range, or if it would change a
    /// setting of a folder that this process can only read. A system error never makes this
    /// function remove or recreate a file.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        options.validate()?;
        let folder = Folder::open(path.as_ref(), options.shared == Some(true))?;
        let (index, is_writable) =
            open_index(&folder, options.guard, folder.write_denial().is_none())?;
        // Another process may have other options, or set another limit.
        let growth = options.segment_len.unwrap_or(0).max(MAX_DEFAULT_SEGMENT_LEN);
        let segments = Self {
            folder,
            options: options.clone(),
            opening: OpenSettings { boot: boot(), guard: options.guard, growth },
            indexes: IndexList::new(),
            is_denied: AtomicBool::new(!is_writable),
            is_lock_missed: AtomicBool::new(false),
            growth_pause: AtomicU32::new(0),
            appender: Mutex::default(),
            exclusive: TimedMutex::new(ExclusiveState::default()),
            counters: Counters::default(),
            fetch_locks: Mutex::default(),
            open_count: AtomicUsize::new(0),
            clock_hand: AtomicUsize::new(0),
        };
        segments.indexes.adopt(|_| Ok::<_, Error>(index))?;
        segments.apply_options()?;
        Ok(segments)
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        let appender = self.lock_appender().take();
        let Ok(Some(mut guard)) = self.folder_guard_for_put() else { return };
        let move_appender = guard.exclusive.move_appender.take();
        let process_id = std::process::id();
        for appender in appender
            .into_iter()
            .chain(move_appender)
            .filter(|appender| appender.process_id == process_id)
        {
            guard.seal(appender);
        }
    }
}
