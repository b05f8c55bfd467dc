//! A folder of segments, as one process sees it.

use crate::access::open_index;
use crate::append::Appender;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::id::Id;
use crate::index::Index;
use crate::indexes::Indexes;
use crate::lock::FolderLock;
use crate::options::{Options, USUAL_MOST, part_most};
use crate::read::Found;
use crate::segment::{Opening, Refusal, Segment};
use crate::settings::Settings;
use crate::stats::Counts;
use crate::timed::TimedMutex;
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

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
    open: AtomicUsize,
    hand: AtomicUsize,
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

    /// Returns options that make the folder again as it is now, after it was removed: those that it
    /// was opened with, with the limits and the sharing that it has.
    pub fn options_to_make_again(&self) -> Options {
        let options = self.options.clone();
        match self.index().and_then(Index::settings) {
            Some(settings) => options
                .limit(settings.limit)
                .least_free(settings.least_free)
                .share_with_group(settings.shared),
            None => options,
        }
    }

    /// Returns the limit of the folder, which any process can change. `None` while another process
    /// makes the index again.
    pub fn limit(&self) -> Option<u64> {
        Some(self.index()?.settings()?.limit)
    }

    /// How long one part may be, under the limit of the folder.
    pub fn part_most(&self) -> u64 {
        let settings = self.index().and_then(Index::settings);
        part_most(settings.map_or(Options::MIN_LIMIT, |settings| settings.limit))
    }

    /// How many bytes one process reserves at once; a good measure for how much to put at once.
    pub fn segment_len(&self) -> u64 {
        let settings = self.index().and_then(Index::settings);
        let limit = settings.map_or(Options::MIN_LIMIT, |settings| settings.limit);
        crate::options::segment_len(&self.options, limit)
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

    /// Opens the index that is there now, if it is another one. `None` if there is none that is
    /// whole and in use.
    pub(crate) fn reopen(&self) -> Result<Option<&Index>> {
        let last = self.indexes.last();
        if let Some(index) = last.filter(|index| index.is_current(&self.folder)) {
            return Ok(Some(index));
        }
        let index = self.indexes.adopt(|last| {
            if last.is_some_and(|last| last.is_current(&self.folder)) {
                return Ok(None);
            }
            let wanted = !self.is_denied.load(Ordering::Relaxed);
            let (opened, writable) = open_index(&self.folder, self.options.guard, wanted)?;
            self.is_denied.store(!writable, Ordering::Relaxed);
            Ok::<_, Error>(opened.filter(Index::in_use))
        })?;
        self.leave(last, index);
        Ok(index.filter(|index| index.is_current(&self.folder)))
    }

    /// Has all threads use an index from now on.
    pub(crate) fn adopt_index(&self, index: Index) -> Result<&Index> {
        let last = self.indexes.last();
        let adopted = self.indexes.adopt(|_| Ok::<_, Error>(Some(index)))?;
        self.leave(last, adopted);
        adopted.ok_or_else(|| {
            let many = std::io::Error::other("it was replaced too often");
            Error::io("use the index of", self.path(), many)
        })
    }

    /// Closes the segments of an index that is no longer used.
    pub(crate) fn leave(&self, last: Option<&Index>, now: Option<&Index>) {
        if let (Some(last), Some(now)) = (last, now)
            && !std::ptr::eq(last, now)
        {
            self.open.fetch_sub(last.close_segments(), Ordering::Relaxed);
        }
    }

    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, Option<Appender>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks a part up. `None` if it is not there, or not under this label.
    #[inline]
    pub fn find(&self, id: &Id, label: &[u8]) -> Option<Found<'_>> {
        let index = self.index()?;
        match self.find_in(index, id, label) {
            // It was replaced meanwhile, and its pages are gone.
            None if !index.in_use() => self.find_again(id, label),
            found => found,
        }
    }

    #[cold]
    fn find_again(&self, id: &Id, label: &[u8]) -> Option<Found<'_>> {
        self.find_in(self.index()?, id, label)
    }

    #[inline(always)]
    fn find_in<'a>(&'a self, index: &'a Index, id: &Id, label: &[u8]) -> Option<Found<'a>> {
        let hash = id.hash();
        for (_, place) in index.sets().of(hash) {
            let Some(segment) = self.segment(index, place.slot) else { continue };
            let Some(head) = segment.head(place.offset) else {
                self.damaged_head(index, hash, place, &segment);
                continue;
            };
            let there = head.holds(id, label) && !head.known_bad(id.number);
            if !there || head.expired(self.now_for(&head)) {
                continue;
            }
            return Some(Found { segments: self, index, segment, head, place });
        }
        None
    }

    fn now_for(&self, head: &crate::record::Head) -> u64 {
        if head.expiry == 0 { 0 } else { self.options.clock.now_ms() }
    }

    #[cold]
    fn damaged_head(
        &self,
        index: &Index,
        hash: u64,
        place: crate::sets::Place,
        segment: &Arc<Segment>,
    ) {
        // The slot may have another segment by now; then nothing is damaged.
        if index.table().number(place.slot) == segment.number {
            self.counts.damaged();
        }
        index.sets().remove(hash, place);
    }

    /// The segment that may be read in a slot.
    #[inline]
    pub(crate) fn segment(&self, index: &Index, slot: u32) -> Option<Arc<Segment>> {
        let number = index.table().number(slot);
        if number == 0 {
            return None;
        }
        self.segment_of(index, slot, number).ok()
    }

    /// The segment with a number, which a slot has.
    #[inline]
    pub(crate) fn segment_of(
        &self,
        index: &Index,
        slot: u32,
        number: u64,
    ) -> std::result::Result<Arc<Segment>, Refusal> {
        let open = index.segments[slot as usize].read().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            Some(segment) if segment.number == number => Ok(segment.clone()),
            _ => {
                drop(open);
                self.open_segment(index, slot, number)
            }
        }
    }

    #[cold]
    fn open_segment(
        &self,
        index: &Index,
        slot: u32,
        number: u64,
    ) -> std::result::Result<Arc<Segment>, Refusal> {
        let mut opened = Segment::open(&self.folder, number, &self.opening);
        // Another one is closed when there are too many open files in this process.
        while matches!(opened, Err(Refusal::System(Errno::MFILE))) && self.close_one(index, slot) {
            opened = Segment::open(&self.folder, number, &self.opening);
        }
        let opened = opened.inspect_err(|refusal| {
            let known = matches!(refusal, Refusal::Missing | Refusal::Damaged);
            if known && index.table().number(slot) == number {
                self.counts.damaged();
            }
        });
        let segment = Arc::new(opened?);
        let place = &index.segments[slot as usize];
        let before = place.write().unwrap_or_else(PoisonError::into_inner).replace(segment.clone());
        if before.is_none() && self.open.fetch_add(1, Ordering::Relaxed) >= self.options.open_files
        {
            self.close_one(index, slot);
        }
        Ok(segment)
    }

    /// Closes a segment that is open for reading, the next one in turn. Returns whether there was
    /// one.
    fn close_one(&self, index: &Index, but: u32) -> bool {
        for _ in 0..index.segments.len() {
            let slot = self.hand.fetch_add(1, Ordering::Relaxed) % index.segments.len();
            if slot == but as usize {
                continue;
            }
            let closed =
                index.segments[slot].write().unwrap_or_else(PoisonError::into_inner).take();
            if closed.is_some() {
                self.open.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Removes a part. Its bytes are freed when its segment is evicted. Does nothing in a read-only
    /// folder.
    pub fn remove(&self, id: &Id) {
        while let Some(index) = self.index() {
            let hash = id.hash();
            for (_, place) in index.sets().of(hash) {
                let segment = self.segment(index, place.slot);
                let head = segment.and_then(|segment| segment.head(place.offset));
                if head.is_none_or(|head| head.holds(id, &head.label)) {
                    index.sets().remove(hash, place);
                }
            }
            // It may have been copied before: then the copy has it still.
            if !index.is_copied() || !matches!(self.turn(), Ok(Some(_))) {
                return;
            }
        }
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

impl std::fmt::Debug for Segments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// A number that the system makes up.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns a number that stays the same until the machine restarts. If the system does not report
/// one, the number is random, and no segment of another process counts as written since the start.
fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let id = std::fs::read("/proc/sys/kernel/random/boot_id");
        id.map_or_else(|_| random(), |id| xxh3_64(&id))
    })
}
