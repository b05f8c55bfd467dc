//! The removal log: which records are removed although their item files exist.
//!
//! The log has files in the folder of the tier, of which the last one is appended to. Each append
//! is one write to the page cache, so an entry survives the death of the process and not a loss of
//! power. A file is removed when all item files that its entries name are removed.
//!
//! If an entry cannot be written, the log must not be missing it later: a mark is stored, for which
//! each file has reserved space, that all records up to now count as removed when the folder is
//! opened again. If the mark cannot be written either, the names of the item files are removed.
//!
//! One mutex protects the files. It is held during a write, so entries have no gaps, and an entry
//! that is not complete is the last one.

mod entry;
mod file;
#[cfg(test)]
mod golden_tests;
mod header;
mod read;
mod removed;

pub(crate) use read::{Fault, log_entries, missing_logs, open_logs, read_logs};
pub use removed::{RemovedRecords, RemovedUnits};

use crate::budget::Budget;
use crate::error::{Damage, Error, Result};
use crate::folder::{Folder, FolderEntry, random};
use crate::items::Files;
use crate::layout::removal::LEN;
use crate::layout::removed::FIRST;
use crate::layout::{BLOCK, MAX_FILE_LEN, REMOVED_NEW, UNIT_BITS};
use crate::record_id::RecordId;
use entry::{MAX_BOUND, Removal, shortened};
use file::LogFile;
use header::Header;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Item files leave one of this many bytes of the budget available to the log.
const HEADROOM_RATIO: u64 = 256;
/// Maximum ids in one write, which bounds the memory for encoding them.
const MAX_IDS_PER_WRITE: usize = 64 << 10;

/// The removal log of a folder.
pub(crate) struct RemovalLog {
    budget: Arc<Budget>,
    folder_salt: u64,
    /// All records whose places were returned have lower ids.
    next_id: AtomicU64,
    /// Maximum length of a file.
    file_len: u64,
    /// Space is reserved in steps of this many bytes.
    step: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The files of the log, the oldest first.
    files: VecDeque<LogFile>,
    is_in_use: bool,
    is_closed: bool,
    /// An entry is missing, and neither the mark nor the removal of names succeeded.
    is_mark_missing: bool,
    /// The id up to which records are committed, if commits are recorded.
    committed: Option<u64>,
    /// The ids of an append.
    ids: Vec<u64>,
    /// The encoded entries of an append.
    bytes: Vec<u8>,
}

impl RemovalLog {
    pub(crate) fn new(budget: Arc<Budget>, folder_salt: u64) -> Self {
        let block = BLOCK as u64;
        let file_len = (budget.max_bytes() / HEADROOM_RATIO).clamp(4 * block, MAX_FILE_LEN);
        let file_len = file_len - file_len % block;
        let step = (file_len / 4).clamp(2 * block, 64 << 10);
        Self {
            budget,
            folder_salt,
            next_id: AtomicU64::new(0),
            file_len,
            step: step - step % block,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a record was appended: [`RemovalLog::append_all`] removes it.
    pub(crate) fn note_record(&self, id: RecordId) {
        self.next_id.store(id.pack() + 1, Ordering::Release);
    }

    fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::Acquire)
    }

    /// Reads the log of a folder that is being opened, before its item files are. Returns what is
    /// removed, and damage. A damaged file of the log removes all records that it may name.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if a file cannot be opened.
    pub(crate) fn load(
        &self,
        folder: &Folder,
        entries: &[FolderEntry],
        was_closed: bool,
        has_items: impl Fn(u64) -> bool,
    ) -> Result<(RemovedRecords, Vec<Damage>)> {
        if entries.iter().any(|entry| entry.name == REMOVED_NEW) {
            folder.remove(REMOVED_NEW)?;
        }
        let logs = open_logs(folder, entries, self.folder_salt, true)?;
        let (mut removed, mut damages) = (RemovedRecords::default(), missing_logs(&logs));
        let mut bound = match logs.last().map(|last| &last.header) {
            Some(Ok(header)) if !damages.is_empty() => header.bound,
            Some(Err(_)) if !damages.is_empty() => MAX_BOUND,
            _ => 0,
        };
        let mut state = self.lock();
        let visit = |removal| match removal {
            Removal::Record(id) if !has_items(id >> UNIT_BITS) => {}
            removal => removed.add(removal),
        };
        read_logs(logs, &*folder.disk, visit, |log, contents| {
            let (file, damage) = LogFile::existing(log, contents, &self.budget, !was_closed);
            if let Some(damage) = damage {
                bound = bound.max(file.bound);
                damages.push(damage);
            }
            state.files.push_back(file);
        });
        removed.add_damaged(bound);
        if was_closed {
            removed.commit_all();
        }
        state.committed = removed.committed();
        Ok((removed, damages))
    }

    /// Ends the opening of a folder: item files get numbers that no entry names, and files of the
    /// log that name only removed item files are removed. Drops removed records of item files that
    /// do not exist.
    pub(crate) fn end_load(&self, folder: &Folder, files: &Files, removed: &mut RemovedRecords) {
        let mut state = self.lock();
        let known = state.files.iter().map(|log| log.bound).filter(|bound| *bound < MAX_BOUND);
        files.skip_number(known.max().unwrap_or(0).saturating_sub(1) >> UNIT_BITS);
        let bound = files.next_number() << UNIT_BITS;
        // A damaged file names no item file that is created later.
        state.files.iter_mut().for_each(|log| log.bound = log.bound.min(bound));
        removed.finish(bound, |number| files.with_number(number).is_some());
        self.next_id.store(bound, Ordering::Release);
        remove_unused(&mut state, folder, files);
    }

    /// Removes all files of a log that is not trusted, before it is read.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The other files stay then.
    pub(crate) fn remove_untrusted(folder: &Folder, entries: &[FolderEntry]) -> Result<()> {
        log_entries(entries).iter().try_for_each(|(_, entry)| folder.remove(&entry.name))?;
        folder.remove(REMOVED_NEW)
    }

    /// Creates the first file of the log if there is none, and makes item files leave space for
    /// the next ones.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`] or the error of the system.
    pub(crate) fn begin_use(&self, folder: &Folder) -> Result<()> {
        let mut state = self.lock_open(folder)?;
        let next_file = self.file_len + 2 * BLOCK as u64;
        let headroom = next_file.max(self.budget.max_bytes() / HEADROOM_RATIO);
        self.budget.set_log_headroom(headroom, self.file_len);
        state.is_in_use = true;
        match state.files.back() {
            Some(last) if last.end_after(0).is_some() => Ok(()),
            _ => self.begin_file(&mut state, folder, FIRST),
        }
    }

    /// Records that all records whose places were returned are complete.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`], [`Error::Closed`] or the error of the system. The records
    /// are not recovered then.
    pub(crate) fn commit(&self, folder: &Folder) -> Result<()> {
        let mut state = self.lock_open(folder)?;
        let committed = self.next_id();
        if state.committed != Some(committed) {
            self.write(&mut state, folder, std::iter::once(Removal::Committed(committed)))?;
            state.committed = Some(committed);
        }
        Ok(())
    }

    /// Removes the committed records of keys with these hashes.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub(crate) fn append_changed(
        &self,
        folder: &Folder,
        files: &Files,
        hashes: &[u64],
    ) -> Result<()> {
        let mut state = self.lock_open(folder)?;
        self.repeat_mark(&mut state, folder, files)?;
        for hashes in hashes.chunks(self.max_entries()) {
            let removals = hashes.iter().map(|hash| Removal::Changed(shortened(*hash)));
            if let Err(error) = self.write(&mut state, folder, removals) {
                let _ = self.mark(&mut state, folder, files);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the maximum number of entries of one write.
    fn max_entries(&self) -> usize {
        // A file begins with an entry of its own.
        let max = ((self.file_len - FIRST) / LEN - 1) as usize;
        max.min(MAX_IDS_PER_WRITE)
    }

    /// Appends the ids of records whose item files exist.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`], [`Error::Closed`] or the error of the system.
    pub(crate) fn append(&self, folder: &Folder, files: &Files, ids: &[RecordId]) -> Result<()> {
        let mut state = self.lock_open(folder)?;
        self.repeat_mark(&mut state, folder, files)?;
        for ids in ids.chunks(self.max_entries()) {
            let mut existing = std::mem::take(&mut state.ids);
            existing.clear();
            files.for_existing(ids, |id| id.file, |id| existing.push(id.pack()));
            let removals = existing.iter().map(|id| Removal::Record(*id));
            let written = self.write(&mut state, folder, removals);
            state.ids = existing;
            if let Err(error) = written {
                let _ = self.mark(&mut state, folder, files);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Appends an entry that removes all records whose places were returned.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Closed`], or the error of the system if the mark cannot be written either.
    pub(crate) fn append_all(&self, folder: &Folder, files: &Files) -> Result<()> {
        let mut state = self.lock_open(folder)?;
        self.repeat_mark(&mut state, folder, files)?;
        let all = std::iter::once(Removal::AllBefore(self.next_id()));
        if self.write(&mut state, folder, all).is_err() {
            // The mark has the same meaning.
            return self.mark(&mut state, folder, files);
        }
        // The entry includes all entries before it.
        remove_while(&mut state, folder, |_| true);
        Ok(())
    }

    /// Removes the files of the log that name only removed item files.
    pub(crate) fn remove_unused(&self, folder: &Folder, files: &Files) {
        remove_unused(&mut self.lock(), folder, files);
    }

    /// Removes all files of the log, and begins another one if it is in use.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The last file stays then.
    pub(crate) fn clear(&self, folder: &Folder) -> Result<()> {
        let mut state = self.lock_open(folder)?;
        if state.is_in_use {
            self.begin_file(&mut state, folder, FIRST)?;
        }
        remove_while(&mut state, folder, |_| true);
        Ok(())
    }

    /// Waits until the log is durable, and refuses entries afterwards.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn close(&self, folder: &Folder, files: &Files) -> Result<()> {
        let mut state = self.lock();
        state.is_closed = true;
        self.repeat_mark(&mut state, folder, files)?;
        state.files.iter_mut().try_for_each(|file| file.sync(folder))
    }

    /// Refuses entries from now on.
    pub(crate) fn stop(&self) {
        self.lock().is_closed = true;
    }

    fn lock_open(&self, folder: &Folder) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.is_closed {
            return Err(Error::Closed { path: folder.path().to_owned() });
        }
        Ok(state)
    }

    /// Writes entries with one write, after all others.
    fn write(
        &self,
        state: &mut State,
        folder: &Folder,
        removals: impl ExactSizeIterator<Item = Removal>,
    ) -> Result<()> {
        if removals.len() == 0 {
            return Ok(());
        }
        let bytes = removals.len() as u64 * LEN;
        let end = state.files.back().and_then(|last| last.end_after(bytes));
        match (end.filter(|end| *end <= self.file_len), state.files.back_mut()) {
            (Some(end), Some(last)) if end > last.len() => {
                last.reserve(folder, end.next_multiple_of(self.step).min(self.file_len))?;
            }
            (Some(_), Some(_)) => {}
            _ => self.begin_file(state, folder, FIRST + bytes)?,
        }
        Self::append_to_last(state, folder, removals)
    }

    fn append_to_last(
        state: &mut State,
        folder: &Folder,
        removals: impl Iterator<Item = Removal>,
    ) -> Result<()> {
        let State { files, bytes, committed, .. } = state;
        match files.back_mut() {
            Some(last) => last.append(folder, removals, committed.unwrap_or(0), bytes),
            None => unreachable!("a file was begun"),
        }
    }

    /// Begins a file with space for entries up to `len`.
    fn begin_file(&self, state: &mut State, folder: &Folder, len: u64) -> Result<()> {
        self.budget.set_folder_bytes(folder.own_bytes());
        let len = (len + LEN).next_multiple_of(self.step).min(self.file_len);
        let charge = self.budget.charge_log(len)?;
        let last = state.files.back();
        let header = Header {
            number: last.map_or(0, |last| last.number) + 1,
            salt: random(),
            folder_salt: self.folder_salt,
            bound: self.next_id(),
            previous: last.and_then(LogFile::end),
        };
        state.files.push_back(LogFile::create(folder, header, len, charge)?);
        // The files before this one may be removed.
        let committed = state.committed.map(Removal::Committed);
        let written = Self::append_to_last(state, folder, committed.into_iter());
        // Without the entry, the file must not stay alone.
        if written.is_err()
            && let Some(file) = state.files.pop_back()
        {
            let _ = folder.remove(&file.name);
        }
        written
    }

    /// Marks all records up to now as removed when the folder is opened again. If the mark cannot
    /// be written, removes the names of the item files, which stay readable until then.
    fn mark(&self, state: &mut State, folder: &Folder, files: &Files) -> Result<()> {
        let bound = self.next_id();
        let last = state.files.back_mut();
        let mut result = Ok(());
        if last.is_none_or(|last| last.write_mark(folder, bound).is_err()) {
            for items in files.all() {
                result = result.and(folder.remove(&items.name));
            }
        }
        state.is_mark_missing = result.is_err();
        result
    }

    /// Marks all records if an earlier attempt failed.
    fn repeat_mark(&self, state: &mut State, folder: &Folder, files: &Files) -> Result<()> {
        if state.is_mark_missing { self.mark(state, folder, files) } else { Ok(()) }
    }
}

/// Removes the oldest files of the log while all records that they name are gone.
fn remove_unused(state: &mut State, folder: &Folder, files: &Files) {
    let oldest = files.oldest_number().map_or(u64::MAX, |number| number << UNIT_BITS);
    remove_while(state, folder, |file| file.bound <= oldest);
}

/// Removes the oldest files of the log while a condition holds, but not the last one if the log is
/// in use.
fn remove_while(state: &mut State, folder: &Folder, condition: impl Fn(&LogFile) -> bool) {
    let min_files = usize::from(state.is_in_use);
    while state.files.len() > min_files && condition(&state.files[0]) {
        // A file that cannot be removed is removed later.
        if folder.remove(&state.files[0].name).is_err() {
            break;
        }
        state.files.pop_front();
    }
}
