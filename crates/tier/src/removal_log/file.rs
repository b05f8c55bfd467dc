//! A file of the removal log.

use crate::budget::{Budget, Charge};
use crate::error::{Damage, Result};
use crate::folder::{Folder, removed_name};
use crate::layout::removed::{FIRST, MARK};
use crate::layout::{BLOCK, REMOVED_NEW};
use crate::removal_log::entry::{Chain, Removal};
use crate::removal_log::header::{End, Header};
use crate::removal_log::read::{LogContents, OpenedLog};
use std::fs::File;
use std::sync::Arc;

/// An open file of the removal log.
pub(crate) struct LogFile {
    file: File,
    pub(crate) name: String,
    pub(crate) number: u64,
    charge: Charge,
    /// The length of the reserved space.
    len: u64,
    salt: u64,
    /// All ids in the file are lower.
    pub(crate) bound: u64,
    /// Where the next entry is written. `None` if the file is damaged.
    end: Option<End>,
    /// A write failed: what is after the end is unknown.
    has_failed: bool,
    /// Has bytes that are not durable.
    is_dirty: bool,
}

impl LogFile {
    /// Creates a file of `len` bytes. It has its name only when the header is written.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn create(
        folder: &Folder,
        header: Header,
        len: u64,
        charge: Charge,
    ) -> Result<Self> {
        let (name, disk) = (removed_name(header.number), &*folder.disk);
        let file = folder.create_file(REMOVED_NEW)?;
        let mut block = [0; BLOCK];
        header.encode(&mut block);
        let allocated = disk.allocate(&file, REMOVED_NEW, len);
        let created = allocated.map_err(|e| folder.error("allocate", REMOVED_NEW, e));
        let created = created.and_then(|()| {
            let written = disk.write(&file, REMOVED_NEW, &block, 0);
            written.map_err(|e| folder.error("write", REMOVED_NEW, e))
        });
        let created = created.and_then(|()| folder.rename(REMOVED_NEW, &name));
        if let Err(error) = created {
            let _ = folder.remove(REMOVED_NEW);
            return Err(error);
        }
        let end = Some(End { offset: FIRST, chain: Chain::new(header.salt) });
        let (number, salt) = (header.number, header.salt);
        let (bound, has_failed, is_dirty) = (0, false, true);
        Ok(Self { file, name, number, charge, len, salt, bound, end, has_failed, is_dirty })
    }

    /// Returns an existing file, and its damage.
    pub(crate) fn existing(
        log: OpenedLog,
        contents: LogContents,
        budget: &Arc<Budget>,
        is_dirty: bool,
    ) -> (Self, Option<Damage>) {
        let (end, damage) = match contents.end {
            Ok(end) => (Some(end), None),
            Err(fault) => (None, Some(fault.into_damage())),
        };
        let OpenedLog { file, name, number, len, header } = log;
        let (charge, salt) = (budget.charge(len), header.map_or(0, |header| header.salt));
        let (bound, has_failed) = (contents.bound, false);
        let file = Self { file, name, number, charge, len, salt, bound, end, has_failed, is_dirty };
        (file, damage)
    }

    /// Returns where the entries end, for the header of the next file. `None` if the file is
    /// damaged.
    pub(crate) fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns the offset after another `bytes` of entries, or `None` if the file cannot be
    /// appended to.
    pub(crate) fn end_after(&self, bytes: u64) -> Option<u64> {
        Some(self.end.filter(|_| !self.has_failed)?.offset + bytes)
    }

    /// Returns the length of the reserved space.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reserves space up to `len` bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`](crate::Error::BudgetReached) or the error of the system.
    pub(crate) fn reserve(&mut self, folder: &Folder, len: u64) -> Result<()> {
        self.charge.grow_log(len)?;
        let allocated = folder.disk.allocate(&self.file, &self.name, len);
        allocated.map_err(|e| folder.error("allocate", &self.name, e))?;
        self.len = len;
        Ok(())
    }

    /// Appends entries with one write. The space is reserved. `bytes` is overwritten.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. Nothing more can be appended then.
    pub(crate) fn append(
        &mut self,
        folder: &Folder,
        removals: impl Iterator<Item = Removal>,
        committed: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(End { offset, mut chain }) = self.end else { unreachable!("a valid file") };
        bytes.clear();
        for removal in removals {
            self.bound = self.bound.max(removal.bound(committed));
            bytes.extend_from_slice(&chain.encode(removal).to_le_bytes());
        }
        self.is_dirty = true;
        let written = folder.disk.write(&self.file, &self.name, bytes, offset);
        written.map_err(|e| {
            self.has_failed = true;
            folder.error("write", &self.name, e)
        })?;
        self.end = Some(End { offset: offset + bytes.len() as u64, chain });
        Ok(())
    }

    /// Writes the mark: all records with lower ids are removed. Its space is reserved since the
    /// file was created.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. No entry can be appended then; the mark can be written
    /// again.
    pub(crate) fn write_mark(&mut self, folder: &Folder, bound: u64) -> Result<()> {
        let mark = Chain::new(self.salt).encode(Removal::AllBefore(bound)).to_le_bytes();
        self.bound = self.bound.max(bound);
        self.is_dirty = true;
        let written = folder.disk.write(&self.file, &self.name, &mark, MARK);
        written.map_err(|e| {
            self.has_failed = true;
            folder.error("write", &self.name, e)
        })
    }

    /// Waits until the file is durable.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn sync(&mut self, folder: &Folder) -> Result<()> {
        if self.is_dirty {
            let synced = folder.disk.sync(&self.file, &self.name);
            synced.map_err(|e| folder.error("sync", &self.name, e))?;
            self.is_dirty = false;
        }
        Ok(())
    }
}
