//! Open item files, the table of their slots, and the byte budget.

use crate::error::{Error, Result};
use crate::footer::Footer;
use crate::layout::{BLOCK, MAX_NUMBER};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The byte budget of a folder.
#[derive(Debug)]
pub(crate) struct Budget {
    max_bytes: u64,
    /// Bytes of everything but item files.
    fixed: AtomicU64,
    /// Bytes of item files, until their last user has closed them: only then the system frees the
    /// space of a removed file.
    items: AtomicU64,
}

impl Budget {
    pub(crate) fn new(max_bytes: u64, fixed: u64) -> Self {
        Self { max_bytes, fixed: AtomicU64::new(fixed), items: AtomicU64::new(0) }
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    pub(crate) fn used(&self) -> u64 {
        self.fixed.load(Ordering::Relaxed) + self.items.load(Ordering::Relaxed)
    }

    pub(crate) fn set_fixed(&self, bytes: u64) {
        self.fixed.store(bytes, Ordering::Relaxed);
    }

    /// Checks that an item file of `len` bytes fits.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`], or [`Error::TooLong`] if the file does not fit even if all
    /// others are removed.
    pub(crate) fn check(&self, len: u64) -> Result<()> {
        let needed = charge_of(len);
        let max = self.max_bytes.saturating_sub(self.fixed.load(Ordering::Relaxed));
        if needed > max {
            return Err(Error::TooLong { what: "record", len: needed, max });
        }
        let available = self.max_bytes.saturating_sub(self.used());
        if needed > available {
            return Err(Error::BudgetReached { needed, available });
        }
        Ok(())
    }
}

/// Returns the bytes that an item file of a length counts: with a block for the metadata of the
/// filesystem.
fn charge_of(len: u64) -> u64 {
    len.next_multiple_of(BLOCK as u64) + BLOCK as u64
}

/// An open item file. It stays readable after it was removed, until its last user drops it.
#[derive(Debug)]
pub(crate) struct ItemFile {
    pub(crate) file: File,
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) slot: u32,
    pub(crate) salt: u64,
    pub(crate) created_ms: u64,
    /// The offset at which the written batches end. Zero if the file is damaged.
    pub(crate) data_end: AtomicU64,
    /// The footer, once the file is sealed.
    pub(crate) footer: OnceLock<Footer>,
    len: AtomicU64,
    budget: Arc<Budget>,
}

impl ItemFile {
    /// Creates the description of an open file and charges its length.
    pub(crate) fn new(
        file: File,
        name: String,
        number: u64,
        len: u64,
        budget: Arc<Budget>,
    ) -> Self {
        budget.items.fetch_add(charge_of(len), Ordering::Relaxed);
        Self {
            file,
            name,
            number,
            slot: 0,
            salt: 0,
            created_ms: 0,
            data_end: AtomicU64::new(0),
            footer: OnceLock::new(),
            len: AtomicU64::new(len),
            budget,
        }
    }

    pub(crate) fn data_end(&self) -> u64 {
        self.data_end.load(Ordering::Acquire)
    }

    /// Makes the bytes before an offset readable.
    pub(crate) fn publish(&self, data_end: u64) {
        self.data_end.store(data_end, Ordering::Release);
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Sets the length and changes the charge.
    pub(crate) fn set_len(&self, len: u64) {
        let old = self.len.swap(len, Ordering::Relaxed);
        self.budget.items.fetch_add(charge_of(len), Ordering::Relaxed);
        self.budget.items.fetch_sub(charge_of(old), Ordering::Relaxed);
    }
}

impl Drop for ItemFile {
    fn drop(&mut self) {
        self.budget.items.fetch_sub(charge_of(self.len()), Ordering::Relaxed);
    }
}

/// The open item files by slot and by number.
#[derive(Debug)]
pub(crate) struct Files {
    table: RwLock<Table>,
    max_slots: usize,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Option<Arc<ItemFile>>>,
    numbers: BTreeMap<u64, u32>,
    /// The highest number of all files that were ever in the table.
    last_number: u64,
}

impl Files {
    pub(crate) fn new(max_slots: usize) -> Self {
        Self { table: RwLock::default(), max_slots }
    }

    fn read<R>(&self, look: impl FnOnce(&Table) -> R) -> R {
        look(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<R>(&self, change: impl FnOnce(&mut Table) -> R) -> R {
        change(&mut self.table.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the file in a slot.
    pub(crate) fn in_slot(&self, slot: u32) -> Option<Arc<ItemFile>> {
        self.read(|table| table.slots.get(slot as usize)?.clone())
    }

    /// Returns the file with a number.
    pub(crate) fn with_number(&self, number: u64) -> Option<Arc<ItemFile>> {
        self.read(|table| table.slots[*table.numbers.get(&number)? as usize].clone())
    }

    /// Returns all files, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<ItemFile>> {
        self.read(|table| {
            let slots = table.numbers.values();
            slots.filter_map(|slot| table.slots[*slot as usize].clone()).collect()
        })
    }

    /// Returns the number of the next file. Numbers are not used again while the tier is open.
    pub(crate) fn next_number(&self) -> u64 {
        self.read(|table| (table.last_number + 1).min(MAX_NUMBER))
    }

    /// Returns whether all slots are used.
    pub(crate) fn is_full(&self) -> bool {
        self.read(|table| table.numbers.len() >= self.max_slots)
    }

    /// Adds a file in the first free slot.
    pub(crate) fn add(&self, mut file: ItemFile) -> Arc<ItemFile> {
        self.write(|table| {
            let slot = table.slots.iter().position(Option::is_none).unwrap_or_else(|| {
                table.slots.push(None);
                table.slots.len() - 1
            });
            file.slot = slot as u32;
            let file = Arc::new(file);
            table.numbers.insert(file.number, slot as u32);
            table.last_number = table.last_number.max(file.number);
            table.slots[slot] = Some(Arc::clone(&file));
            file
        })
    }

    /// Removes a file from the table.
    pub(crate) fn remove(&self, number: u64) {
        self.write(|table| {
            if let Some(slot) = table.numbers.remove(&number) {
                table.slots[slot as usize] = None;
            }
        });
    }
}
