//! Opening a folder and closing it.

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::index::list::Indexes;
use crate::lock::TimedMutex;
use crate::options::{Options, USUAL_MOST};
use crate::random::boot;
use crate::segment::Opening;
use crate::segments::{Alone, Segments, open_index};
use crate::stats::Counts;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

impl Segments {
    /// Opens a folder; makes what is missing. Takes no longer for a big one than for a small one,
    /// unless its index is missing or damaged: then it is made from the segments.
    ///
    /// A folder in which this process may not write, of another user or on a read-only mount, is
    /// opened for reading alone: what is there is found, and nothing is put. See
    /// [`Segments::read_only`] for what happens when that changes.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder or its index cannot be opened at all, or if a newer version
    /// wrote them. Returns [`Error::Options`] if an option is out of range, or if it would change a
    /// setting of a folder that this process can only read. A system error never makes it remove or
    /// recreate a file.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        options.validate()?;
        let folder = Folder::open(path.as_ref(), options.shared == Some(true))?;
        let (index, writable) =
            open_index(&folder, options.guard, folder.refuses_writing().is_none())?;
        // Another process may have other options, or set another limit.
        let growth = options.segment_len.unwrap_or(0).max(USUAL_MOST);
        let segments = Self {
            folder,
            options: options.clone(),
            opening: Opening { boot: boot(), guard: options.guard, growth },
            indexes: Indexes::new(),
            is_denied: AtomicBool::new(!writable),
            is_lock_missed: AtomicBool::new(false),
            growth_pause: AtomicU32::new(0),
            writer: Mutex::default(),
            alone: TimedMutex::new(Alone::default()),
            counts: Counts::default(),
            claims: Mutex::default(),
            open: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
        };
        segments.indexes.adopt(|_| Ok::<_, Error>(index))?;
        segments.settle_options()?;
        Ok(segments)
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        let full = self.lock_writer().take();
        let Ok(Some(mut turn)) = self.turn() else { return };
        let kept = turn.alone.kept.take();
        let process = std::process::id();
        for open in full.into_iter().chain(kept).filter(|open| open.process == process) {
            turn.seal(open);
        }
    }
}
