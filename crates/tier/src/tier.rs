//! The tier: a folder of item files that one process uses.

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::folder::{Folder, FolderEntry, FolderGuard, boot, is_own, random, removed_number};
use crate::inspect::item_entries;
use crate::items::Files;
use crate::layout::MANIFEST_NAME;
use crate::manifest::{Manifest, State};
use crate::options::Options;
use crate::place::Place;
use crate::reader::Reader;
use crate::record::Record;
use crate::record_id::RecordId;
use crate::recover::{Recovery, recover};
use crate::removal_log::RemovalLog;
use crate::removals::Removals;
use crate::shared::Shared;
use crate::state::FolderState;
use crate::writer::Writer;
use nuthatch_clock::Clock;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of item files, opened for reading and writing by one process.
///
/// Dropping it without [`Tier::close`] is the same as the death of the process: records that were
/// not flushed are lost, all others are recovered at the next opening.
pub struct Tier {
    shared: Arc<Shared>,
    writer: Writer,
    clock: Arc<dyn Clock>,
    manifest: Manifest,
    _guard: FolderGuard,
}

/// An item file of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// The number of the file. Higher numbers are newer.
    pub number: u64,
    /// The slot of the file, which is part of the places of its records.
    pub slot: u32,
    /// Length in bytes; the reserved length if the file is open.
    pub len: u64,
    /// The number of records.
    pub records: u64,
    /// When the file was created, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// When the last item expires, in milliseconds since the Unix epoch. `None` if an item does
    /// not expire, or the file is not sealed.
    pub last_expiry_ms: Option<u64>,
    /// Whether the file is sealed.
    pub is_sealed: bool,
}

impl Tier {
    /// Opens a folder and recovers its item files. Creates the folder if it is missing.
    ///
    /// Sealed files are not read, except for their header and footer; an unsealed file is read
    /// up to its first incomplete batch, and sealed. Damage in an item file is part of the
    /// [`Recovery`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::Options`], [`Error::NotAFolder`], [`Error::InUse`], [`Error::Version`],
    /// [`Error::Manifest`], [`Error::ReadOnly`], or the error of the system, for example if the
    /// disk is full. No item file is changed or removed because of an error.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<(Self, Recovery)> {
        options.check()?;
        let folder = Folder::open(path.as_ref(), Arc::clone(&options.disk))?;
        let guard = folder.lock()?;
        let mut entries = folder.list()?;
        let old = existing_manifest(&folder, &entries)?;
        let (manifest, mut recovery) = next_manifest(old, options.hash_seed);
        if recovery.state == FolderState::LostPower {
            // The state is durable before entries are removed, so they are never missed.
            folder.replace_manifest(manifest)?;
            RemovalLog::remove_untrusted(&folder, &entries)?;
            entries.retain(|entry| removed_number(&entry.name).is_none());
        }
        let shared = new_shared(folder, &entries, manifest.salt, options);
        shared.charge_folder();
        let items = item_entries(&entries);
        let has_items = |number| items.binary_search_by_key(&number, |(number, _)| *number).is_ok();
        let (log, was_closed) = (&shared.removal_log, recovery.state == FolderState::Closed);
        let (removed, damage) = log.load(&shared.folder, &entries, was_closed, has_items)?;
        (recovery.removed, recovery.damage) = (removed, damage);
        recover(&shared, &items, options.clock.now_ms(), &mut recovery)?;
        log.end_load(&shared.folder, &shared.files, &mut recovery.removed);
        shared.folder.replace_manifest(manifest)?;
        let tier = Self {
            shared: Arc::new(shared),
            writer: Writer::new(options.file_len, options.batch_len),
            clock: Arc::clone(&options.clock),
            manifest,
            _guard: guard,
        };
        Ok((tier, recovery))
    }

    /// Returns a reader.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.shared))
    }

    /// Returns the handle with which records are removed, so that they are not recovered. Creates
    /// the removal log if the folder has none.
    ///
    /// From the first call on, item files leave a 256th of the budget available to the log, at
    /// least 24 KiB.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`] if an item file must be removed first, or the error of the
    /// system.
    pub fn removals(&self) -> Result<Removals> {
        self.shared.removal_log.begin_use(&self.shared.folder)?;
        Ok(Removals::new(Arc::clone(&self.shared)))
    }

    /// Returns whether the removal log has less space than item files leave to it, because it grew
    /// since the last item file was created. The caller removes the oldest item file before the
    /// budget is reached.
    #[must_use]
    pub fn lacks_room_for_removals(&self) -> bool {
        self.shared.budget.lacks_headroom()
    }

    /// Returns the seed with which the keys of all records in this folder are hashed.
    #[must_use]
    pub fn hash_seed(&self) -> u64 {
        self.manifest.hash_seed
    }

    /// Appends a record to the batch in memory, and writes the batch if it is full. Returns the
    /// place of the record, which can be read after the batch was written: see [`Tier::flush`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`] if an item file must be removed first; [`Error::TooLong`];
    /// or the error of the system. The record is not appended then; records that were appended
    /// before stay in the batch, and the next call tries to write them again.
    pub fn append(&mut self, record: &Record<'_>) -> Result<Place> {
        self.writer.append(&self.shared, record, self.clock.now_ms())
    }

    /// Writes the batch in memory, padded to 4 KiB. All records can be read afterwards, and are
    /// recovered if this process dies.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The call can be repeated.
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush(&self.shared)
    }

    /// Flushes, writes the directory of the open item file, and waits until the file is durable.
    /// The next record begins another file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The call can be repeated.
    pub fn seal(&mut self) -> Result<()> {
        self.writer.seal(&self.shared, self.clock.now_ms())
    }

    /// Returns an id that is greater than those of all records so far, and not greater than those
    /// of later ones.
    #[must_use]
    pub fn next_id(&self) -> RecordId {
        let new_file = || RecordId { file: self.shared.files.next_number(), unit: 0 };
        self.writer.next_id().unwrap_or_else(new_file)
    }

    /// Returns the item files, the oldest first. The last one may be open.
    #[must_use]
    pub fn files(&self) -> Vec<FileInfo> {
        let open = self.writer.open_number();
        let files = self.shared.files.all();
        let info = files.iter().map(|items| {
            let footer = items.footer.get();
            let is_open = Some(items.number) == open;
            let records = if is_open { self.writer.open_records() } else { 0 };
            FileInfo {
                number: items.number,
                slot: items.slot,
                len: items.len(),
                records: footer.map_or(records, |footer| footer.records),
                created_ms: items.created_ms,
                last_expiry_ms: footer
                    .map(|footer| footer.last_expiry_ms)
                    .filter(|expiry_ms| *expiry_ms != u64::MAX),
                is_sealed: footer.is_some(),
            }
        });
        info.collect()
    }

    /// Removes the oldest item file, but not the open one. Returns its number, or `None` if there
    /// is none.
    ///
    /// The caller removes its places from the index first: see [`Reader::directory`].
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The file stays then.
    pub fn remove_oldest(&mut self) -> Result<Option<u64>> {
        let open = self.writer.open_number();
        let Some(oldest) = self.shared.files.all().first().map(|items| items.number) else {
            return Ok(None);
        };
        if Some(oldest) == open {
            return Ok(None);
        }
        self.remove_file(oldest)?;
        Ok(Some(oldest))
    }

    /// Removes an item file, also the open one, whose batch is then discarded. A missing file is
    /// not an error. The bytes count until the last [`ReadPlan`](crate::ReadPlan) is dropped.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The file stays then.
    pub fn remove_file(&mut self, number: u64) -> Result<()> {
        self.shared.remove_items(number)?;
        if self.writer.open_number() == Some(number) {
            self.writer.discard();
        }
        Ok(())
    }

    /// Removes all item files and the removal log, and clears the state after a loss of power, or
    /// that of outdated records.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. Files that are not removed yet stay then.
    pub fn clear(&mut self) -> Result<()> {
        for items in self.shared.files.all() {
            self.remove_file(items.number)?;
        }
        self.shared.removal_log.clear(&self.shared.folder)?;
        self.trust_records()
    }

    /// Clears the state after a loss of power, or that of outdated records: the caller has removed
    /// the item files whose records it cannot vouch for. See [`FolderState`].
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The state stays then.
    pub fn trust_records(&mut self) -> Result<()> {
        if matches!(self.manifest.state, State::LostPower | State::Outdated) {
            // The names of removed files must not come back after the next loss of power.
            self.shared.folder.sync()?;
            self.set_state(State::Open)?;
        }
        Ok(())
    }

    /// Stores that the records may be out of date from now on, before a process uses the items and
    /// does not record in the removal log which of them it replaces or removes. Each later opening
    /// reports it, until [`clear`](Self::clear) has removed the records. Durable when the call
    /// returns.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The state stays then.
    pub fn mark_outdated(&mut self) -> Result<()> {
        self.set_state(State::Outdated)
    }

    fn set_state(&mut self, state: State) -> Result<()> {
        let manifest = Manifest { state, ..self.manifest };
        self.shared.folder.replace_manifest(manifest)?;
        self.manifest = manifest;
        Ok(())
    }

    /// Returns the maximum bytes of all files in the folder.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.shared.budget.max_bytes()
    }

    /// Returns the bytes of all files in the folder and of the folder itself, with space that is
    /// reserved for the open item file. Never more than [`Tier::max_bytes`].
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.shared.budget.used()
    }

    /// Returns whether records of `bytes` bytes can be appended without removing an item file
    /// first, and the removal log has enough space.
    #[must_use]
    pub fn has_room_for(&self, bytes: u64) -> bool {
        let len = self.writer.new_file_len(bytes);
        self.shared.budget.has_room_for_items(len) && !self.shared.files.is_full()
    }

    /// Returns the bytes that were written to item files since the tier was opened.
    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.shared.written_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes of memory for the batch and for the directory of the open item file.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.writer.memory_bytes()
    }

    /// Seals the open item file, waits until everything is durable, and marks the folder as closed,
    /// unless its records may be out of date.
    /// All [`Removals`] are refused from then on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The folder then counts as not closed.
    pub fn close(mut self) -> Result<()> {
        self.seal()?;
        self.shared.removal_log.close(&self.shared.folder, &self.shared.files)?;
        self.shared.folder.sync()?;
        if self.manifest.state == State::Open {
            self.set_state(State::Closed)?;
        }
        Ok(())
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        // Another process may open the folder while handles exist.
        self.shared.removal_log.stop();
    }
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tier")
            .field("folder", &self.shared.folder.path())
            .field("used_bytes", &self.used_bytes())
            .finish_non_exhaustive()
    }
}

/// Returns the manifest of a folder that is being opened, and what the old one says about it.
fn next_manifest(old: Option<Manifest>, hash_seed: Option<u64>) -> (Manifest, Recovery) {
    let boot = boot();
    let found = old.map_or(FolderState::New, |old| old.folder_state(boot));
    let manifest = Manifest {
        state: match found {
            FolderState::LostPower => State::LostPower,
            FolderState::Outdated => State::Outdated,
            _ => State::Open,
        },
        salt: old.map_or_else(random, |old| old.salt),
        hash_seed: old.map_or_else(|| hash_seed.unwrap_or_else(random), |old| old.hash_seed),
        boot,
    };
    (manifest, Recovery { state: found, ..Recovery::default() })
}

fn new_shared(folder: Folder, entries: &[FolderEntry], salt: u64, options: &Options) -> Shared {
    let foreign = entries.iter().filter(|entry| !is_own(&entry.name));
    let foreign_bytes = foreign.map(|entry| entry.len.next_multiple_of(4096)).sum();
    let budget = Arc::new(Budget::new(options.max_bytes, foreign_bytes));
    Shared {
        folder,
        files: Files::new(options.slots()),
        written_bytes: AtomicU64::new(0),
        removal_log: RemovalLog::new(Arc::clone(&budget), salt),
        budget,
        folder_salt: salt,
        direct_io: options.direct_io,
    }
}

/// Reads the manifest. Returns `None` for a new folder.
///
/// # Errors
///
/// Returns [`Error::Manifest`] if there are item files and no manifest, [`Error::Version`], or the
/// error of the system.
fn existing_manifest(folder: &Folder, entries: &[FolderEntry]) -> Result<Option<Manifest>> {
    let manifest = folder.manifest()?;
    let has_items = entries.iter().any(|entry| crate::folder::items_number(&entry.name).is_some());
    if manifest.is_none() && has_items {
        let path = folder.path().join(MANIFEST_NAME);
        return Err(Error::Manifest { path, found: "item files without a manifest" });
    }
    Ok(manifest)
}
