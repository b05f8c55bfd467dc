//! A turn: one thread of one process has the folder to itself and changes the table. The system
//! ends the turn of a process that dies; what it left half done is marked by a word, and put right
//! by the next turn.

use crate::append::{Appender, FIRST_OFFSET, WriterFile};
use crate::error::{Error, Result};
use crate::folder::segment_name;
use crate::grow::free_pages;
use crate::index::{Geometry, Index};
use crate::layout::{GRAIN, INDEX_NAME, SETTINGS_NAME, index as at};
use crate::lock::{Byte, FolderLock, Mode, is_free, on_byte};
use crate::options::segment_len;
use crate::pages::Pages;
use crate::reason::Reason;
use crate::record::erase_head;
use crate::segment::{Segment, header};
use crate::segments::{Alone, Segments, random};
use crate::sets::Place;
use crate::settings::{self, Settings, Stored};
use crate::settle::NEXT_AHEAD;
use crate::table::{Row, State};
use crate::timed::TimedGuard;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Segments that are begun before a process compares the table with the folder again.
const SETTLE_EVERY: u32 = 64;

/// The turn of this thread.
pub(crate) struct Turn<'a> {
    pub(crate) of: &'a Segments,
    pub(crate) index: &'a Index,
    pub(crate) settings: Settings,
    pub(crate) alone: TimedGuard<'a, Alone>,
    /// The slot whose records are being moved: it is not evicted to make room for them.
    pub(crate) moving: Option<u32>,
    /// Whether a segment is being begun, which can have the file of one that goes.
    pub(crate) beginning: bool,
    /// The file of a segment that went.
    pub(crate) spare: Option<Spare>,
    /// The lock of the folder, but for work that needs none: see [`Turn::release`].
    lock: Option<FolderLock>,
}

/// The file of a segment that nobody reads or writes any more, under its old name. Writing over
/// pages that are in memory takes half the time of writing to new ones.
pub(crate) struct Spare {
    /// Has both locks of the file, whose header is zero.
    pub(crate) file: File,
    pub(crate) name: String,
}

/// What a segment counts: its pages, and one for what the file system keeps of it.
pub(crate) fn counted(len: u64) -> u64 {
    len.next_multiple_of(4096) + 4096
}

impl Segments {
    pub(crate) fn turn_with<'a>(
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

    /// Stores the settings among the options for all processes, and makes the index if there is
    /// none.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Options`] if the folder can only be read and an option differs from its
    /// settings.
    pub(crate) fn settle_options(&self) -> Result<()> {
        match self.check_writable() {
            Err(Error::ReadOnly { .. }) if self.options.have_settings() => {
                return self.check_options();
            }
            Err(Error::ReadOnly { .. }) => return Ok(()),
            checked => checked?,
        }
        let stored = settings::load(&self.folder);
        let copy = self.index().and_then(Index::settings);
        if let (Ok(Stored::Good(stored)), Some(copy)) = (&stored, copy)
            && *stored == copy
            && copy.with(&self.options) == copy
        {
            self.folder.set_shared(copy.shared);
            return Ok(());
        }
        let mut turn = self.own_turn()?;
        let wanted = turn.settings.with(&self.options);
        if wanted != turn.settings {
            turn.change_settings(wanted)?;
        }
        Ok(())
    }

    /// Checks that the settings of a folder that can only be read are those among the options.
    fn check_options(&self) -> Result<()> {
        let stored = match settings::load(&self.folder)? {
            Stored::Good(stored) => Some(stored),
            Stored::Absent | Stored::Damaged => self.index().and_then(Index::settings),
        };
        let stored = stored.unwrap_or(Settings::DEFAULT);
        let Some((option, stored, found)) = stored.first_change(stored.with(&self.options)) else {
            return Ok(());
        };
        let expected = format!("{stored} as it is, since this process can only read the folder");
        Err(Error::Options { option, expected, found })
    }

    /// Returns the settings of the folder, for a thread that has it to itself. What is damaged of
    /// them, the file or the copy in the index, is written again. Whoever changes the file changes
    /// the copy as well, so the file is read only if the copy is not as before, or if `due`.
    fn settings_now(
        &self,
        index: Option<&Index>,
        alone: &mut Alone,
        due: bool,
    ) -> Result<Settings> {
        let copy = index.and_then(Index::settings);
        if let Some(settings) = copy.filter(|copy| !due && alone.settings == Some(*copy)) {
            return Ok(settings);
        }
        let known = copy.or(alone.settings);
        let found = match settings::load(&self.folder) {
            Ok(Stored::Good(settings)) => settings,
            Ok(damaged) => {
                let path = || self.path().join(SETTINGS_NAME);
                let default = Settings::DEFAULT.with(&self.options);
                let settings = match known {
                    Some(known) => known,
                    // The usual limit might be far more than what the user has room for.
                    None if damaged == Stored::Damaged && self.options.limit.is_none() => {
                        return Err(Error::Settings { path: path() });
                    }
                    None => default,
                };
                // A disk that is full must not keep anybody from making room.
                let _ = settings::store(&self.folder, settings);
                settings
            }
            Err(error @ Error::Version { .. }) => return Err(error),
            Err(error) => known.ok_or(error)?,
        };
        if let Some(index) = index.filter(|_| copy != Some(found)) {
            index.set_settings(found);
        }
        self.folder.set_shared(found.shared);
        alone.settings = Some(found);
        Ok(found)
    }

    /// Makes an index from the segments. The caller has the folder to himself, and has found that
    /// there is no index, or one that is damaged or too big.
    pub(crate) fn rebuild(&self, alone: &mut Alone, settings: Settings) -> Result<&Index> {
        let last = self.indexes.last();
        let usual = segment_len(&self.options, settings.limit);
        let geometry = Geometry::suit(settings.limit, usual, settings.parts);
        // Others may have it mapped and not know. Then it goes before there is another one: both
        // would count.
        match self.folder.open_file(INDEX_NAME, OFlags::RDWR) {
            Ok(file) => {
                let len = file.metadata().map_or(0, |found| found.len());
                let _ = file.write_all_at(&at::REPLACED.to_le_bytes(), at::RETIRED as u64);
                free_pages(&file, len);
            }
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ISDIR) => {}
            Err(errno) => return Err(self.folder.error("open", INDEX_NAME, errno)),
        }
        let removed = self.folder.remove(INDEX_NAME);
        removed.map_err(|errno| self.folder.error("remove", INDEX_NAME, errno))?;
        let guard = self.options.guard;
        let index = Index::make(&self.folder, geometry, random(), settings, guard)?;
        index.word(at::DIRTY).store(1, Ordering::Release);
        Index::publish(&self.folder)?;
        if let Some(last) = last {
            last.retire(at::REPLACED);
            self.counts.rebuilt();
        }
        // The turn of whoever asked finds the mark and enters the segments that are there.
        (alone.kept, alone.settled) = (None, None);
        self.adopt_index(index)
    }
}

impl Turn<'_> {
    /// Gives the lock back, for work that changes nothing of the table. Other processes may have
    /// turns meanwhile; threads of this one may not.
    pub(crate) fn release(&mut self) {
        self.drop_spare();
        self.lock = None;
    }

    /// Waits for the lock again. Other processes may have changed the table, replaced the index or
    /// changed the settings.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such turn any more, `Error::Busy` for one if another process
    /// has the lock for too long. Then nothing more may be changed.
    pub(crate) fn retake(&mut self) -> Result<()> {
        let of = self.of;
        let busy = || Error::Busy { path: of.path().to_owned() };
        let taken = self.alone.lock(&of.folder, of.options.patience);
        let lock = taken.map_err(|e| Error::io("lock", of.path(), e))?;
        of.note_lock(lock.is_some());
        self.lock = Some(lock.ok_or_else(busy)?);
        self.index = of.reopen()?.ok_or_else(busy)?;
        self.settings = of.settings_now(Some(self.index), &mut self.alone, false)?;
        if self.index.is_copied() {
            self.index.retire(at::IN_USE);
        }
        if self.index.word(at::DIRTY).load(Ordering::Acquire) != 0 {
            self.settle_table()?;
        }
        Ok(())
    }

    /// Changes the settings for every process.
    pub(crate) fn change_settings(&mut self, settings: Settings) -> Result<()> {
        settings::store(&self.of.folder, settings)?;
        let shared = self.settings.shared != settings.shared;
        self.settings = settings;
        self.alone.settings = Some(settings);
        self.index.set_settings(settings);
        self.of.folder.set_shared(settings.shared);
        if shared {
            self.of.folder.change_modes(crate::contents::is_own)?;
        }
        self.fit_index()?;
        self.room(0, true)?;
        Ok(())
    }

    /// Does something that leaves the table wrong when it is not done to its end.
    pub(crate) fn changing<T>(&self, change: impl FnOnce() -> T) -> T {
        let dirty = self.index.word(at::DIRTY);
        let before = dirty.swap(1, Ordering::AcqRel);
        let result = change();
        dirty.store(before, Ordering::Release);
        result
    }

    pub(crate) fn next(&self, at: usize) -> u64 {
        self.index.word(at).fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn segment_len(&self) -> u64 {
        segment_len(&self.of.options, self.settings.limit)
    }

    /// Ends the appending to a segment; what it reserved and did not use is given back.
    pub(crate) fn seal(&mut self, full: Appender) {
        let table = self.index.table();
        let row = table.row(full.slot).filter(|row| row.file == full.number);
        if let Some(row) = row.filter(|_| full.family == self.index.family) {
            // The file may be longer: it was another segment's before, or has pages to spare.
            if let Some(before) = full.file.metadata().ok().filter(|file| file.len() > full.tail) {
                let _ = full.file.set_len(full.tail);
                // When it was last written to is when something was put.
                let _ = before.modified().and_then(|written| full.file.set_modified(written));
            }
            let sealed = Row { state: State::Sealed, counted: counted(full.tail), ..row };
            self.changing(|| table.set_row(full.slot, &sealed));
        }
        drop(full);
    }

    /// A segment with room for a record of so many bytes: one that another process left unfinished,
    /// or a new one.
    pub(crate) fn begin(
        &mut self,
        len: u64,
        kept: bool,
    ) -> Result<std::result::Result<Appender, Reason>> {
        let whole = (FIRST_OFFSET + len).max(self.segment_len());
        if !kept && let Some(open) = self.resume(len, whole)? {
            return Ok(Ok(open));
        }
        let outer = std::mem::replace(&mut self.beginning, true);
        let room = self.room(counted(whole), kept);
        self.beginning = outer;
        if !room? {
            self.drop_spare();
            return Ok(Err(Reason::NoRoom));
        }
        self.index.word(at::DIRTY).store(1, Ordering::Release);
        let begun = self.begin_new(whole, kept);
        self.drop_spare();
        self.index.word(at::DIRTY).store(0, Ordering::Release);
        begun
    }

    /// Removes the file of a segment that went, if no other segment got it. As long as there is
    /// such a file, the table is marked as being changed: the file is in no row.
    pub(crate) fn drop_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            let _ = spare.file.set_len(0);
            let _ = self.of.folder.remove(&spare.name);
            self.index.word(at::DIRTY).store(0, Ordering::Release);
        }
    }

    fn begin_new(
        &mut self,
        whole: u64,
        kept: bool,
    ) -> Result<std::result::Result<Appender, Reason>> {
        let Some(slot) = self.index.table().free_slot() else { return Ok(Err(Reason::NoRoom)) };
        self.alone.settled = self.alone.settled.map(|since| since + 1);
        let number = self.next(at::NEXT);
        if number == 0 || number >= u64::MAX - NEXT_AHEAD {
            self.settle()?;
            return Ok(Err(Reason::Folder));
        }
        let row = Row {
            file: number,
            counted: counted(whole),
            state: State::Writing,
            kept,
            unread: false,
            turn: self.next(at::TURN),
        };
        let table = self.index.table();
        table.set_row(slot, &row);
        let made = self.make(slot, number, whole);
        match &made {
            Ok(_) => table.set_number(slot, number),
            Err(_) => table.set_row(slot, &Row::FREE),
        }
        match made {
            Ok(open) => Ok(Ok(open)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                // The count of numbers was damaged; the folder tells which are taken.
                self.settle()?;
                Ok(Err(Reason::Folder))
            }
            Err(error) => Ok(Err(Reason::of_system(&error))),
        }
    }

    /// Makes the file of a segment.
    fn make(&mut self, slot: u32, number: u64, end: u64) -> std::io::Result<Appender> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let name = segment_name(number);
        let reused = self.reuse(&name, end);
        let new = reused.is_none();
        let file = match reused {
            Some(file) => file,
            None => self.of.folder.open_file(&name, flags)?,
        };
        let pages = new.then(|| Pages::of(&file, end)).flatten();
        let salt = random();
        let header = header(number, salt, self.of.opening.boot);
        let written = on_byte(&file, Byte::Writer, Mode::Alone)
            .and_then(|_| self.of.options.disk.write(&file, &header, &[], 0));
        if let Err(error) = written {
            let _ = self.of.folder.remove(&name);
            return Err(error);
        }
        Ok(Appender { pages, ..self.appender(slot, number, file, salt, FIRST_OFFSET, end) })
    }

    /// Gives the spare file a new name.
    fn reuse(&mut self, name: &str, end: u64) -> Option<File> {
        let spare = self.spare.take()?;
        let len = spare.file.metadata().ok()?.len();
        let reused = (len <= end || spare.file.set_len(end).is_ok())
            && self.of.folder.rename_new(&spare.name, name).is_ok()
            && on_byte(&spare.file, Byte::Lent, Mode::None).unwrap_or(false);
        if reused {
            return Some(spare.file);
        }
        self.spare = Some(spare);
        self.drop_spare();
        None
    }

    fn appender(
        &self,
        slot: u32,
        number: u64,
        file: File,
        salt: u64,
        tail: u64,
        end: u64,
    ) -> Appender {
        let (family, process) = (self.index.family, std::process::id());
        let file = Arc::new(WriterFile::new(file));
        Appender { slot, number, file, salt, tail, end, family, process, pages: None }
    }

    /// Goes on with a segment that is sealed and mostly empty, so that many processes that write a
    /// little do not leave many small files.
    fn resume(&mut self, len: u64, whole: u64) -> Result<Option<Appender>> {
        let table = self.index.table();
        let small = |row: &Row| {
            let sealed = row.state == State::Sealed && !row.kept && !row.unread;
            sealed && row.counted + len + 8192 <= whole / 2
        };
        let Some((slot, row)) = table.rows().find(|(_, row)| small(row)) else { return Ok(None) };
        if !self.room(counted(whole) - row.counted.min(whole), false)?
            || table.row(slot) != Some(row)
        {
            return Ok(None);
        }
        let name = segment_name(row.file);
        let Ok(file) = self.of.folder.open_file(&name, OFlags::RDWR) else { return Ok(None) };
        let reading = Segment::open(&self.of.folder, row.file, &self.of.opening);
        // Whoever reclaims it may be about to evict it.
        let free = is_free(&file, Byte::Work)
            && on_byte(&file, Byte::Writer, Mode::Alone).unwrap_or(false);
        let Some(reading) = reading.ok().filter(|reading| free && !reading.doubtful) else {
            return Ok(None);
        };
        let Ok(last) = reading.last_record() else { return Ok(None) };
        let tail = reading.file_len().next_multiple_of(GRAIN);
        if let Some((offset, head)) = last.filter(|(_, head)| head.end() > tail) {
            let place = Place { slot, offset };
            let sets = self.index.sets();
            // An incomplete write has no words. If there are some, the file was truncated.
            let is_truncated = head.hashes().any(|hash| sets.uses(hash, place).is_some());
            if is_truncated || erase_head(&file, offset).is_err() {
                return Ok(None);
            }
        }
        if tail + len > whole {
            return Ok(None);
        }
        let writing = Row { state: State::Writing, counted: counted(whole), ..row };
        self.changing(|| table.set_row(slot, &writing));
        Ok(Some(self.appender(slot, row.file, file, reading.salt, tail, whole)))
    }

    /// Seals what processes that died were appending to. Whether there was any.
    pub(crate) fn seal_orphans(&mut self) -> bool {
        let table = self.index.table();
        let mut found = false;
        for (slot, row) in table.rows().filter(|(_, row)| row.state == State::Writing) {
            let name = segment_name(row.file);
            let Ok(file) = self.of.folder.open_file(&name, OFlags::RDWR) else { continue };
            if !on_byte(&file, Byte::Writer, Mode::Alone).unwrap_or(false) {
                continue;
            }
            let len = file.metadata().map_or(0, |metadata| metadata.len());
            let sealed = Row { state: State::Sealed, counted: counted(len), ..row };
            self.changing(|| table.set_row(slot, &sealed));
            found = true;
        }
        found
    }

    /// How many bytes of reserved room are not written yet.
    pub(crate) fn unwritten(&self) -> u64 {
        let rows = self.index.table().rows().filter(|(_, row)| row.state == State::Writing);
        let left = rows.map(|(_, row)| {
            let name = segment_name(row.file);
            let blocks = self.of.folder.stat(&name).map_or(0, |stat| stat.st_blocks);
            let len = blocks.cast_unsigned() * 512;
            row.counted.saturating_sub(len)
        });
        left.sum()
    }
}
