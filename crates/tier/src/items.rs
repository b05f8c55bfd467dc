//! Open item files, and the table of their slots.

use crate::budget::Charge;
use crate::footer::Footer;
use crate::layout::{BLOCK, MAX_NUMBER};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

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
    /// The mean length of the records of a file that is not sealed.
    mean_record_len: AtomicU64,
    charge: Charge,
}

/// Share of the records of the mean length that are read as a whole, in percent.
const READ_WHOLE_PERCENT: u64 = 95;

impl ItemFile {
    /// Creates the description of an open file.
    pub(crate) fn new(file: File, name: String, number: u64, charge: Charge) -> Self {
        Self {
            file,
            name,
            number,
            slot: 0,
            salt: 0,
            created_ms: 0,
            data_end: AtomicU64::new(0),
            footer: OnceLock::new(),
            mean_record_len: AtomicU64::new(0),
            charge,
        }
    }

    pub(crate) fn data_end(&self) -> u64 {
        self.data_end.load(Ordering::Acquire)
    }

    /// Makes the bytes before an offset readable.
    pub(crate) fn publish(&self, data_end: u64) {
        self.data_end.store(data_end, Ordering::Release);
    }

    /// Sets the bytes of all records and their number, while the file is not sealed.
    pub(crate) fn set_records(&self, bytes: u64, records: u64) {
        self.mean_record_len.store(bytes / records.max(1), Ordering::Relaxed);
    }

    /// Returns the bytes to read for a record whose length is unknown: as many blocks as 95 % of
    /// the records of the mean length have. A record may begin anywhere in its first block.
    pub(crate) fn typical_len(&self) -> u64 {
        let mean = match self.footer.get() {
            Some(footer) => footer.live_bytes / footer.records.max(1),
            None => self.mean_record_len.load(Ordering::Relaxed),
        };
        let block = BLOCK as u64;
        (block * READ_WHOLE_PERCENT / 100 + mean).next_multiple_of(block)
    }

    pub(crate) fn len(&self) -> u64 {
        self.charge.len()
    }

    /// Sets the length and changes the charge.
    pub(crate) fn set_len(&self, len: u64) {
        self.charge.set_len(len);
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

    /// Calls `visit` for the items whose item files are in the table.
    pub(crate) fn for_existing<T>(
        &self,
        items: &[T],
        number: impl Fn(&T) -> u64,
        mut visit: impl FnMut(&T),
    ) {
        self.read(|table| {
            let existing = items.iter().filter(|item| table.numbers.contains_key(&number(item)));
            existing.for_each(&mut visit);
        });
    }

    /// Returns the number of the oldest file.
    pub(crate) fn oldest_number(&self) -> Option<u64> {
        self.read(|table| table.numbers.keys().next().copied())
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

    /// Makes the next number higher than `number`.
    pub(crate) fn skip_number(&self, number: u64) {
        self.write(|table| table.last_number = table.last_number.max(number));
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
