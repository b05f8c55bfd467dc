//! Looks into a folder at rest, without changing it.

use crate::budget::Budget;
use crate::contents::Contents;
use crate::directory::Directory;
use crate::disk::SystemDisk;
use crate::error::{Damage, Error, Result};
use crate::folder::{Folder, FolderEntry, FolderGuard, boot};
use crate::footer::Footer;
use crate::inspect::{FileState, has_no_batch, inspect, item_entries};
use crate::items::ItemFile;
use crate::layout::MANIFEST_NAME;
use crate::reader::{directory_of, stored_directory};
use crate::removal_log::{Fault, log_entries, missing_logs, open_logs, read_logs};
use crate::scan::{AtDamage, Scanned, rebuild};
use crate::state::FolderState;
use std::path::Path;
use std::sync::Arc;

/// What a folder contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// The state in which the last process left the folder.
    pub state: FolderState,
    /// The number of item files.
    pub files: u64,
    /// The number of sealed item files.
    pub sealed_files: u64,
    /// Bytes of all files in the folder.
    pub bytes: u64,
    /// The number of records, those of overwritten or deleted items included.
    pub records: u64,
    /// The number of these records whose items have expired.
    pub expired: u64,
    /// The bytes of all records.
    pub record_bytes: u64,
    /// When the oldest item file was created, in milliseconds since the Unix epoch.
    pub oldest_ms: Option<u64>,
    /// When the newest item file was created, in milliseconds since the Unix epoch.
    pub newest_ms: Option<u64>,
    /// The number of files of the removal log.
    pub removal_logs: u64,
    /// Bytes of the removal log.
    pub removal_log_bytes: u64,
    /// The number of entries in the removal log. Each one removes a record, or all records before
    /// it; those whose item files were removed are included.
    pub removal_entries: u64,
    /// Item files, directories and files of the removal log that are damaged or cannot be read.
    pub damage: Vec<Damage>,
}

/// The outcome of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of item files.
    pub files: u64,
    /// The number of valid records.
    pub records: u64,
    /// Bytes of the item files and of the removal log.
    pub bytes: u64,
    /// The number of files of the removal log.
    pub removal_logs: u64,
    /// The number of valid entries in the removal log.
    pub removal_entries: u64,
    /// The batch at the end of an unsealed file that is incomplete because the process died. It is
    /// not damage.
    pub incomplete_batch: Option<Damage>,
    /// What is damaged.
    pub damage: Vec<Damage>,
    /// What the system cannot read.
    pub unreadable: Vec<Damage>,
}

/// A folder that no process writes to while this exists.
struct Rest {
    folder: Folder,
    budget: Arc<Budget>,
    salt: u64,
    state: FolderState,
    bytes: u64,
    files: Vec<(u64, FolderEntry)>,
    entries: Vec<FolderEntry>,
    _guard: Option<FolderGuard>,
}

impl Rest {
    fn open(path: &Path) -> Result<Self> {
        let folder = Folder::open_read_only(path, Arc::new(SystemDisk))?;
        let guard = folder.lock_shared()?;
        let Some(manifest) = folder.manifest()? else {
            let path = folder.path().join(MANIFEST_NAME);
            return Err(Error::Manifest { path, found: "no such file" });
        };
        let entries = folder.list()?;
        let bytes = entries.iter().map(|entry| entry.len).sum();
        let (salt, state) = (manifest.salt, manifest.folder_state(boot()));
        let (budget, files) = (Arc::new(Budget::new(u64::MAX, 0)), item_entries(&entries));
        Ok(Self { folder, budget, salt, state, bytes, files, entries, _guard: guard })
    }

    /// Returns the number of files of the removal log, and their bytes.
    fn removal_logs(&self) -> (u64, u64) {
        let logs = log_entries(&self.entries);
        (logs.len() as u64, logs.iter().map(|(_, entry)| entry.len).sum())
    }

    /// Reads the removal log. Returns the number of its valid entries, and what is damaged or
    /// cannot be read. After a loss of power it is not read, because opening removes it.
    fn read_removal_log(&self) -> Result<(u64, Vec<Fault>)> {
        if self.state == FolderState::LostPower {
            return Ok((0, Vec::new()));
        }
        let logs = open_logs(&self.folder, &self.entries, self.salt, false)?;
        let missing = missing_logs(&logs).into_iter().map(Fault::Damaged);
        let (mut count, mut faults) = (0, missing.collect::<Vec<_>>());
        let visit = |_| ();
        read_logs(logs, &*self.folder.disk, visit, |_, contents| {
            count += contents.entries;
            faults.extend(contents.end.err());
        });
        Ok((count, faults))
    }

    /// Returns whether a file is the one that a process was writing when it died.
    fn is_last(&self, index: usize) -> bool {
        self.state != FolderState::Closed && index + 1 == self.files.len()
    }

    /// Returns whether the process died while it created the file, which is not damage.
    fn is_incomplete(&self, index: usize, items: &ItemFile, state: &FileState) -> bool {
        matches!(state, FileState::BadHeader(_))
            && self.is_last(index)
            && has_no_batch(items, &*self.folder.disk)
    }

    fn inspect(&self, index: usize) -> Result<(ItemFile, FileState)> {
        let (number, entry) = &self.files[index];
        let numbered = (*number, entry);
        let found = inspect(&self.folder, numbered, self.salt, &self.budget, false, |_| ())?;
        Ok((found.items, found.state))
    }
}

/// Reads the headers, footers and directories of a folder that no process uses. Unsealed files are
/// read completely.
///
/// # Errors
///
/// Returns [`Error::NotAFolder`], [`Error::InUse`], [`Error::Manifest`], [`Error::Version`], or the
/// error of the system.
pub fn stat(path: impl AsRef<Path>, now_ms: u64) -> Result<Stat> {
    let rest = Rest::open(path.as_ref())?;
    let (removal_logs, removal_log_bytes) = rest.removal_logs();
    let (removal_entries, faults) = rest.read_removal_log()?;
    let mut stat = Stat {
        removal_logs,
        removal_log_bytes,
        removal_entries,
        damage: faults.into_iter().map(Fault::into_damage).collect(),
        state: rest.state,
        files: rest.files.len() as u64,
        bytes: rest.bytes,
        ..Stat::default()
    };
    for index in 0..rest.files.len() {
        let (items, state) = rest.inspect(index)?;
        if rest.is_incomplete(index, &items, &state) {
            continue;
        }
        if let FileState::BadHeader(damage) | FileState::Unreadable(damage) = state {
            stat.damage.push(damage);
            continue;
        }
        stat.oldest_ms = Some(stat.oldest_ms.unwrap_or(u64::MAX).min(items.created_ms));
        stat.newest_ms = Some(stat.newest_ms.unwrap_or(0).max(items.created_ms));
        let directory = if let Some(footer) = items.footer.get() {
            stat.sealed_files += 1;
            stat.record_bytes += footer.live_bytes;
            let (directory, damage) = directory_of(&items, &*rest.folder.disk);
            stat.damage.extend(damage);
            directory
        } else {
            let disk = &*rest.folder.disk;
            let (contents, scanned) = rebuild(&items, disk, items.len(), AtDamage::Stop);
            stat.record_bytes += contents.live_bytes;
            let (slot, created_ms, data_end) = (0, items.created_ms, scanned.data_end);
            Directory { slot, created_ms, data_end, bytes: contents.entries }
        };
        stat.records += directory.len() as u64;
        let has_expired =
            |entry: &crate::Entry| entry.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms);
        stat.expired += directory.iter().filter(has_expired).count() as u64;
    }
    Ok(stat)
}

/// Reads every byte of the item files and of the removal log in a folder that no process uses, and
/// compares all checksums, and directories with records. Calls `progress` with the bytes of the
/// files so far and of all files.
///
/// # Errors
///
/// Returns the same errors as [`stat`]. Damage in an item file is not an error.
pub fn verify(path: impl AsRef<Path>, mut progress: impl FnMut(u64, u64)) -> Result<Verified> {
    let rest = Rest::open(path.as_ref())?;
    let (removal_logs, log_bytes) = rest.removal_logs();
    let total = log_bytes + rest.files.iter().map(|(_, entry)| entry.len).sum::<u64>();
    let (removal_entries, faults) = rest.read_removal_log()?;
    let mut verified = Verified {
        files: rest.files.len() as u64,
        removal_logs,
        removal_entries,
        bytes: log_bytes,
        ..Verified::default()
    };
    for fault in faults {
        match fault {
            Fault::Damaged(damage) => verified.damage.push(damage),
            Fault::Unreadable(damage) => verified.unreadable.push(damage),
        }
    }
    for index in 0..rest.files.len() {
        let (items, state) = rest.inspect(index)?;
        match state {
            _ if rest.is_incomplete(index, &items, &state) => {}
            FileState::BadHeader(damage) => verified.damage.push(damage),
            FileState::Unreadable(damage) => verified.unreadable.push(damage),
            FileState::Sealed => verify_sealed(&rest, &items, &mut verified),
            FileState::Unsealed(damage) => {
                let damage = Some(damage).filter(|_| !rest.is_last(index));
                verify_unsealed(&rest, &items, damage, &mut verified);
            }
        }
        verified.bytes += items.len();
        progress(verified.bytes, total);
    }
    Ok(verified)
}

fn verify_sealed(rest: &Rest, items: &ItemFile, verified: &mut Verified) {
    let disk = &*rest.folder.disk;
    let (contents, scanned) = rebuild(items, disk, items.data_end(), AtDamage::Continue);
    let is_valid = scanned.damage.is_empty();
    add(verified, scanned);
    let stored = match stored_directory(items, disk) {
        Some(Ok(stored)) => stored,
        Some(Err(damage)) => return verified.damage.push(damage),
        None => return,
    };
    // Damaged batches have entries, too, and are reported already.
    let footer = items.footer.get().filter(|_| is_valid);
    if let Some(reason) = footer.and_then(|footer| difference(footer, &contents, &stored)) {
        let offset = items.data_end();
        verified.damage.push(Damage::new(&items.name, offset, reason));
    }
}

/// Returns how the footer or the directory differ from the records.
fn difference(footer: &Footer, contents: &Contents, stored: &[u8]) -> Option<&'static str> {
    if contents.entries != stored {
        return Some("expected the entries of the records, found others");
    }
    let found = (footer.batches, footer.live_bytes, footer.last_expiry_ms);
    let expected = (contents.batches, contents.live_bytes, contents.last_expiry_ms);
    (found != expected).then_some("expected a footer with the counts of the records")
}

fn verify_unsealed(rest: &Rest, items: &ItemFile, damage: Option<Damage>, verified: &mut Verified) {
    let (_, mut scanned) = rebuild(items, &*rest.folder.disk, items.len(), AtDamage::Stop);
    if damage.is_none() && !scanned.has_io_error {
        verified.incomplete_batch = scanned.damage.pop();
    }
    verified.damage.extend(damage);
    add(verified, scanned);
}

fn add(verified: &mut Verified, scanned: Scanned) {
    verified.records += scanned.records;
    let list = if scanned.has_io_error { &mut verified.unreadable } else { &mut verified.damage };
    list.extend(scanned.damage);
}
