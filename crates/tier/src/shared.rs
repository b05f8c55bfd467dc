//! What the writer and all readers of a tier share.

use crate::budget::Budget;
use crate::disk::{Disk, enable_direct_io};
use crate::error::{Error, Result};
use crate::folder::{Folder, items_name, random};
use crate::header::Header;
use crate::items::{Files, ItemFile};
use crate::layout::BLOCK;
use crate::removal_log::RemovalLog;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The folder, its files and its budget.
pub(crate) struct Shared {
    pub(crate) folder: Folder,
    pub(crate) files: Files,
    pub(crate) budget: Arc<Budget>,
    pub(crate) removal_log: RemovalLog,
    /// Bytes that were written to item files.
    pub(crate) written_bytes: AtomicU64,
    pub(crate) folder_salt: u64,
    pub(crate) direct_io: bool,
}

impl Shared {
    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.folder.disk
    }

    /// Updates the bytes of the folder itself.
    pub(crate) fn charge_folder(&self) {
        self.budget.set_folder_bytes(self.folder.own_bytes());
    }

    /// Enables direct I/O for a file, if it is wanted and supported.
    pub(crate) fn prepare(&self, file: &File) {
        if self.direct_io {
            enable_direct_io(file);
        }
    }

    /// Creates an item file of `len` bytes with a header.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`] or the error of the system. The file is removed then.
    pub(crate) fn create_items(
        &self,
        len: u64,
        created_ms: u64,
        block: &mut [u8],
    ) -> Result<Arc<ItemFile>> {
        self.charge_folder();
        let charge = self.budget.charge_items(len)?;
        if self.files.is_full() {
            return Err(Error::BudgetReached { needed: len, available: 0 });
        }
        let number = self.files.next_number();
        let name = items_name(number);
        let file = self.folder.create_file(&name)?;
        let mut items = ItemFile::new(file, name, number, charge);
        items.salt = random();
        items.created_ms = created_ms;
        let (salt, folder_salt) = (items.salt, self.folder_salt);
        Header { number, salt, folder_salt, created_ms }.encode(block);
        if let Err(error) = self.fill_new_file(&items, len, block) {
            let _ = self.folder.remove(&items.name);
            return Err(error);
        }
        items.publish(BLOCK as u64);
        Ok(self.files.add(items))
    }

    fn fill_new_file(&self, items: &ItemFile, len: u64, header: &[u8]) -> Result<()> {
        let allocated = self.disk().allocate(&items.file, &items.name, len);
        allocated.map_err(|e| self.folder.error("allocate", &items.name, e))?;
        self.prepare(&items.file);
        self.write(items, header, 0)
    }

    /// Writes bytes to an item file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn write(&self, items: &ItemFile, bytes: &[u8], offset: u64) -> Result<()> {
        let written = self.disk().write(&items.file, &items.name, bytes, offset);
        written.map_err(|e| self.folder.error("write", &items.name, e))?;
        self.written_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Removes an item file. Readers that use it at the moment finish their reads.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The file stays then.
    pub(crate) fn remove_items(&self, number: u64) -> Result<()> {
        self.folder.remove(&items_name(number))?;
        self.files.remove(number);
        self.removal_log.remove_unused(&self.folder, &self.files);
        Ok(())
    }
}
