//! What the writer and all readers of a tier share.

use crate::disk::{Disk, enable_direct_io};
use crate::error::{Error, Result};
use crate::folder::{Folder, items_name, random};
use crate::header::Header;
use crate::items::{Budget, Files, ItemFile};
use crate::layout::BLOCK;
use std::fs::File;
use std::sync::Arc;

/// The folder, its files and its budget.
pub(crate) struct Shared {
    pub(crate) folder: Folder,
    pub(crate) files: Files,
    pub(crate) budget: Arc<Budget>,
    pub(crate) folder_salt: u64,
    pub(crate) direct_io: bool,
    /// Bytes of files that do not belong to the tier.
    pub(crate) foreign_bytes: u64,
}

/// Bytes that count for the manifest, the next manifest and the lock file.
const SMALL_FILES_BYTES: u64 = 3 * BLOCK as u64;

impl Shared {
    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.folder.disk
    }

    /// Updates the bytes of everything but item files. One more name may enlarge the folder by a
    /// block.
    pub(crate) fn charge_folder(&self) {
        let folder = self.folder.own_bytes().max(BLOCK as u64) + BLOCK as u64;
        self.budget.set_fixed(SMALL_FILES_BYTES + folder + self.foreign_bytes);
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
        self.budget.check(len)?;
        if self.files.is_full() {
            return Err(Error::BudgetReached { needed: len, available: 0 });
        }
        let number = self.files.next_number();
        let name = items_name(number);
        let file = self.folder.create_file(&name)?;
        // Charged until the description is dropped, also if the next steps fail.
        let mut items = ItemFile::new(file, name, number, len, Arc::clone(&self.budget));
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
        written.map_err(|e| self.folder.error("write", &items.name, e))
    }

    /// Removes an item file. Readers that use it at the moment finish their reads.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. The file stays then.
    pub(crate) fn remove_items(&self, number: u64) -> Result<()> {
        self.folder.remove(&items_name(number))?;
        self.files.remove(number);
        Ok(())
    }
}
