//! How a folder is opened.

use crate::clock::{Clock, SystemClock};
use crate::disk::{Disk, SystemDisk};
use crate::error::{Error, Result};
use crate::layout::{index, segment};
use std::sync::Arc;
use std::time::Duration;

/// How often the bytes of a part are compared with their checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Check {
    /// Not at all, but for what was written before the machine last started: that is checked once.
    Never,
    /// When this process first reads them.
    #[default]
    Once,
    /// Whenever they are read.
    Always,
}

/// How a folder of segments is opened.
#[derive(Clone)]
pub struct Options {
    pub(crate) limit: Option<u64>,
    pub(crate) least_free: Option<u64>,
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

/// What a folder may hold when nobody ever said.
pub(crate) const LIMIT_DEFAULT: u64 = 10 << 30;
/// The share of the limit that one part may take.
const PART_SHARE: u64 = 8;

impl Options {
    /// The default of [`open_files`](Self::open_files).
    pub const OPEN_FILES: usize = 256;
    /// The minimum [`limit`](Self::limit) of a folder in bytes: 4 MiB.
    pub const MIN_LIMIT: u64 = 4 << 20;

    /// The limits of the folder as they are, or 10 GiB; checks once.
    #[must_use]
    pub fn new() -> Self {
        Self {
            limit: None,
            least_free: None,
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

    /// Sets the maximum number of bytes that all files of the folder take together: at least 4 MiB,
    /// and 10 GiB for a new folder. The setting is stored and holds for all processes.
    ///
    /// If the folder has more, opening it evicts the excess at once, the least used segments first.
    /// Pinned parts stay, and so do segments that other processes write to. Nothing is asked or
    /// reported: compare [`Segments::stat`](crate::Segments::stat) before and after.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// How many bytes of the file system stay free. Holds from then on for every process.
    #[must_use]
    pub fn least_free(mut self, bytes: u64) -> Self {
        self.least_free = Some(bytes);
        self
    }

    /// How long a segment is: what a process reserves at once, and what is evicted at once. By
    /// default between a sixteenth and a hundredth of the limit. A record that is longer has a
    /// segment of its own.
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

    /// How often bytes are compared with their checksum.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Sets how long a put waits for the lock of the folder while another process or thread changes
    /// the folder, because it reclaims a segment for instance. By default 2 seconds. After that the
    /// bytes are not kept ([`Reason::Busy`](crate::Reason::Busy)), which is counted, and later puts
    /// do not wait until one of them gets the lock. Reads never wait.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How many segments are held open for reading, 16 at least.
    #[must_use]
    pub fn open_files(mut self, count: usize) -> Self {
        self.open_files = count.max(16);
        self
    }

    /// Whether the signal for a page that vanished (`SIGBUS`) is caught where it concerns files of
    /// the folder; signals that concern others go to the handler that was there before. Without it,
    /// a file that somebody truncates while it is mapped ends the process.
    #[must_use]
    pub fn guard(mut self, guard: bool) -> Self {
        self.guard = guard;
        self
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets what writes go through, and what knows the filesystem of the folder.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Returns whether settings of the folder are among the options.
    pub(crate) fn have_settings(&self) -> bool {
        let numbers = [self.limit, self.least_free, self.parts];
        numbers.iter().any(Option::is_some) || self.shared.is_some()
    }

    pub(crate) fn validate(&self) -> Result<()> {
        at_least("limit", self.limit, Self::MIN_LIMIT)?;
        at_least("segment_len", self.segment_len, 64 << 10)?;
        at_most("segment_len", self.segment_len, segment::LEN_MOST / 4)?;
        at_most("parts", self.parts, index::SETS_MOST * 8)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

fn at_least(option: &'static str, value: Option<u64>, least: u64) -> Result<()> {
    match value {
        Some(value) if value < least => Err(Error::Options {
            option,
            expected: format!("at least {least}"),
            found: value.to_string(),
        }),
        _ => Ok(()),
    }
}

fn at_most(option: &'static str, value: Option<u64>, most: u64) -> Result<()> {
    match value {
        Some(value) if value > most => Err(Error::Options {
            option,
            expected: format!("at most {most}"),
            found: value.to_string(),
        }),
        _ => Ok(()),
    }
}

/// No segment is longer that nobody asked for.
pub(crate) const USUAL_MOST: u64 = 512 << 20;

/// How long a segment is, for a limit.
pub(crate) fn segment_len(options: &Options, limit: u64) -> u64 {
    let usual = (limit / 128).max((4 << 20).min(limit / 16)).min(USUAL_MOST);
    options.segment_len.unwrap_or(usual).min(limit / 8).next_multiple_of(4096)
}

/// How long a part may be, for a limit.
pub(crate) fn part_most(limit: u64) -> u64 {
    (limit / PART_SHARE).min(segment::LEN_MOST / 4)
}
