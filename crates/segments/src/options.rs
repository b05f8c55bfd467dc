//! Options for opening a folder.

use crate::disk::{Disk, SystemDisk};
use crate::error::{Error, Result};
use crate::layout::{index, segment};
use nuthatch_clock::{Clock, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// How often the bytes of a part are compared with their checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Check {
    /// Never, except that parts written before the last start of the machine are checked once.
    Never,
    /// When this process first reads the part.
    #[default]
    Once,
    /// On each read.
    Always,
}

/// Options for opening a folder of segments.
#[derive(Clone)]
pub struct Options {
    pub(crate) limit: Option<u64>,
    pub(crate) min_free: Option<u64>,
    pub(crate) segment_len: Option<u64>,
    pub(crate) parts: Option<u64>,
    pub(crate) shared: Option<bool>,
    pub(crate) check: Check,
    pub(crate) patience: Duration,
    pub(crate) open_files: usize,
    pub(crate) guard: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: Arc<dyn Disk>,
}

/// The limit of a new folder, in bytes.
pub(crate) const DEFAULT_LIMIT: u64 = 10 << 30;
/// A part may take one of this many bytes of the limit.
const MAX_PART_RATIO: u64 = 8;

impl Options {
    /// The default of [`open_files`](Self::open_files).
    pub const OPEN_FILES: usize = 256;
    /// The minimum [`limit`](Self::limit) of a folder in bytes: 4 MiB.
    pub const MIN_LIMIT: u64 = 4 << 20;

    /// Returns the default options: the stored settings of the folder, or a limit of 10 GiB for a
    /// new one, and [`Check::Once`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            limit: None,
            min_free: None,
            segment_len: None,
            parts: None,
            shared: None,
            check: Check::Once,
            patience: Duration::from_secs(2),
            open_files: Self::OPEN_FILES,
            guard: true,
            clock: Arc::new(SystemClock),
            disk: Arc::new(SystemDisk),
        }
    }

    /// Sets the maximum number of bytes that all files of the folder take together, at least 4 MiB.
    /// By default the stored limit, or 10 GiB for a new folder. The setting is stored and holds for
    /// all processes.
    ///
    /// If the folder has more, opening it evicts the excess at once, the least used segments first.
    /// Pinned parts stay, and so do segments that other processes write to. This is not
    /// reported: compare [`Segments::stat`](crate::Segments::stat) before and after.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Sets the number of bytes of the filesystem that stay free. By default the stored number, or
    /// 0 for a new folder. The setting is stored and holds for all processes.
    #[must_use]
    pub fn min_free(mut self, bytes: u64) -> Self {
        self.min_free = Some(bytes);
        self
    }

    /// Sets the length of a segment in bytes, from 64 KiB to 4 GiB: what a process reserves at
    /// once, and the unit of eviction. By default 4 MiB up to a limit of 512 MiB (at most 1/16 of
    /// the limit), then 1/128 of the limit, at most 512 MiB. A segment never takes more than an
    /// eighth of the limit. A longer record gets a segment of its own.
    #[must_use]
    pub fn segment_len(mut self, bytes: u64) -> Self {
        self.segment_len = Some(bytes);
        self
    }

    /// Sets whether the folder is shared with its group: mode 2770 and files 0660. By default only
    /// the owner has access: 0700 and 0600. The setting is stored and holds for all processes,
    /// whatever their umask is. An existing folder for which it was never set keeps its mode.
    #[must_use]
    pub fn share_with_group(mut self, shared: bool) -> Self {
        self.shared = Some(shared);
        self
    }

    /// Sets the minimum capacity of the index in parts; by default one part per 16 KiB of the
    /// limit. The index grows when it is full. The setting is stored and holds for all processes.
    #[must_use]
    pub fn parts(mut self, count: u64) -> Self {
        self.parts = Some(count);
        self
    }

    /// Sets how often bytes are compared with their checksum; [`Check::Once`] by default.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Sets how long a put waits for exclusive access to the folder while another process or thread
    /// changes it, for example to reclaim a segment. By default 2 seconds. After that the record is
    /// not kept ([`NotKeptReason::Busy`](crate::NotKeptReason::Busy)), which is counted, and later
    /// puts do not wait until one of them gets access. Reads never wait.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the maximum number of segments that are open for reading, at least 16; 256 by default.
    #[must_use]
    pub fn open_files(mut self, count: usize) -> Self {
        self.open_files = count.max(16);
        self
    }

    /// Sets whether `SIGBUS` is handled for maps of the folder, `true` by default. Signals for
    /// other addresses are passed to the previous handler. Without it, truncation of a mapped file
    /// ends the process.
    #[must_use]
    pub fn guard(mut self, guard: bool) -> Self {
        self.guard = guard;
        self
    }

    /// Sets the clock that decides when records expire; by default [`SystemClock`].
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the disk, which writes records and reports free space and the filesystem; by default
    /// that of the operating system. Tests replace it to simulate failures.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Returns whether the options contain settings of the folder.
    pub(crate) fn have_settings(&self) -> bool {
        let numbers = [self.limit, self.min_free, self.parts];
        numbers.iter().any(Option::is_some) || self.shared.is_some()
    }

    /// Checks that the options are in range.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Options`] for the first that is not.
    pub(crate) fn validate(&self) -> Result<()> {
        at_least("limit", self.limit, Self::MIN_LIMIT)?;
        at_least("segment_len", self.segment_len, 64 << 10)?;
        at_most("segment_len", self.segment_len, segment::MAX_LEN / 4)?;
        at_most("parts", self.parts, index::MAX_SETS * 8)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

fn at_least(option: &'static str, value: Option<u64>, min: u64) -> Result<()> {
    match value {
        Some(value) if value < min => Err(Error::Options {
            option,
            expected: format!("at least {min}"),
            found: value.to_string(),
        }),
        _ => Ok(()),
    }
}

fn at_most(option: &'static str, value: Option<u64>, max: u64) -> Result<()> {
    match value {
        Some(value) if value > max => Err(Error::Options {
            option,
            expected: format!("at most {max}"),
            found: value.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Maximum length of a segment unless the options set one.
pub(crate) const MAX_DEFAULT_SEGMENT_LEN: u64 = 512 << 20;

/// Returns the length of a segment for a limit.
pub(crate) fn segment_len(options: &Options, limit: u64) -> u64 {
    let usual = (limit / 128).max((4 << 20).min(limit / 16)).min(MAX_DEFAULT_SEGMENT_LEN);
    options.segment_len.unwrap_or(usual).min(limit / 8).next_multiple_of(4096)
}

/// Returns the maximum length of a part for a limit.
pub(crate) fn max_part_len(limit: u64) -> u64 {
    (limit / MAX_PART_RATIO).min(segment::MAX_LEN / 4)
}
