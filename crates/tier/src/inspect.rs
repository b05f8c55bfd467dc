//! Opens an existing item file and reads its header and its footer.

use crate::budget::Budget;
use crate::buffer::AlignedBuffer;
use crate::disk::Disk;
use crate::error::{Damage, Result};
use crate::folder::{Folder, FolderEntry, items_number};
use crate::footer::Footer;
use crate::header::Header;
use crate::items::ItemFile;
use crate::layout::BLOCK;
use std::fs::File;
use std::sync::Arc;

/// An item file that was opened.
pub(crate) struct Inspected {
    pub(crate) items: ItemFile,
    pub(crate) state: FileState,
}

/// What the header and the footer say about an item file.
pub(crate) enum FileState {
    Sealed,
    /// The header is valid, and there is no valid footer.
    Unsealed(Damage),
    /// The header is damaged.
    BadHeader(Damage),
    /// The system cannot read the header or the footer.
    Unreadable(Damage),
}

/// Returns the item files of a folder, with their numbers, the oldest first.
pub(crate) fn item_entries(entries: &[FolderEntry]) -> Vec<(u64, FolderEntry)> {
    let numbered = entries.iter().filter_map(|entry| {
        let number = items_number(&entry.name).filter(|_| entry.is_file)?;
        Some((number, entry.clone()))
    });
    let mut files: Vec<_> = numbered.collect();
    files.sort_by_key(|(number, _)| *number);
    files
}

/// Opens an item file. `prepare` is called with the open file before it is read.
///
/// # Errors
///
/// Returns the error of the system if the file cannot be opened.
pub(crate) fn inspect(
    folder: &Folder,
    (number, entry): (u64, &FolderEntry),
    folder_salt: u64,
    budget: &Arc<Budget>,
    is_writable: bool,
    prepare: impl FnOnce(&File),
) -> Result<Inspected> {
    let file = folder.open_file(&entry.name, is_writable)?;
    prepare(&file);
    let mut items = ItemFile::new(file, entry.name.clone(), number, budget.charge(entry.len));
    let mut block = AlignedBuffer::new(BLOCK);
    let state = read_header(&mut items, &*folder.disk, folder_salt, &mut block)
        .unwrap_or_else(|| read_footer(&items, &*folder.disk, &mut block));
    Ok(Inspected { items, state })
}

/// Reads the header. Returns a state if the header is not valid.
fn read_header(
    items: &mut ItemFile,
    disk: &dyn Disk,
    folder_salt: u64,
    block: &mut AlignedBuffer,
) -> Option<FileState> {
    let damage = |reason| Damage::new(&items.name, 0, reason);
    let read = match disk.read(&items.file, &items.name, block.as_mut_slice(), 0) {
        Ok(read) => read,
        Err(error) => {
            return Some(FileState::Unreadable(damage(format!("cannot be read: {error}"))));
        }
    };
    match Header::decode(&block.as_slice()[..read], items.number, folder_salt) {
        Ok(header) => {
            items.salt = header.salt;
            items.created_ms = header.created_ms;
            None
        }
        Err(reason) => Some(FileState::BadHeader(damage(reason))),
    }
}

/// Returns whether an item file has nothing but zeros after its header, so that no batch was
/// written to it. Returns false if it cannot be read.
pub(crate) fn has_no_batch(items: &ItemFile, disk: &dyn Disk) -> bool {
    let mut block = AlignedBuffer::new(BLOCK);
    let read = disk.read(&items.file, &items.name, block.as_mut_slice(), BLOCK as u64);
    read.is_ok_and(|read| block.as_slice()[..read].iter().all(|byte| *byte == 0))
}

fn read_footer(items: &ItemFile, disk: &dyn Disk, block: &mut AlignedBuffer) -> FileState {
    let (len, last) = (items.len(), items.len().saturating_sub(BLOCK as u64));
    if !len.is_multiple_of(BLOCK as u64) {
        let reason = "expected a length that is a multiple of 4096, found a truncated file";
        return FileState::Unsealed(Damage::new(&items.name, len, reason));
    }
    match disk.read(&items.file, &items.name, block.as_mut_slice(), last) {
        Err(error) => {
            let reason = format!("cannot be read: {error}");
            FileState::Unreadable(Damage::new(&items.name, last, reason))
        }
        Ok(read) => {
            match Footer::decode(&block.as_slice()[..read], items.salt, items.number, len) {
                Ok(footer) => {
                    items.publish(footer.directory);
                    let _ = items.footer.set(footer);
                    FileState::Sealed
                }
                Err(reason) => FileState::Unsealed(Damage::new(&items.name, last, reason)),
            }
        }
    }
}
