//! The receiver of rows that fills batches for the writer.

use super::absent::{AbsentKeys, KeySet};
use super::kept::{Counters, Kept};
use super::row_place::RowPlace;
use super::sampler::Sampler;
use crate::interruption::Interruption;
use crate::job::Entries;
use crate::sources::{RowReceiver, Stop};
use nuthatch_import::RowSink;
use nuthatch_rows::{Mapper, Row};
use nuthatch_snapshot::{Batch, Value};
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

/// Maximum bytes of the batches of a part that are held, so that the part can be dropped.
pub(super) const MAX_HELD_BYTES: usize = 16 << 20;
/// Approximate bytes of a full batch.
const BATCH_BYTES: usize = 1 << 20;
/// Number of rows after which an interruption is looked for.
const CHECK_ROWS: u64 = 1 << 10;

/// A batch for the writer.
pub(super) struct Filled {
    pub(super) batch: Batch,
    pub(super) entries: u64,
}

/// Makes entries of rows on one thread.
pub(super) struct BatchReceiver<'a> {
    pub(super) place: RowPlace,
    pub(super) number: u16,
    pub(super) entries: &'a Entries,
    pub(super) mapper: Option<Mapper>,
    /// A batch that stays empty, of which others are made.
    pub(super) empty: Batch,
    pub(super) batch: Batch,
    /// Full batches of the part, as long as it can be dropped.
    pub(super) held: Vec<Batch>,
    /// Whether there is a part of which no row was passed on.
    pub(super) can_drop_part: bool,
    pub(super) filled: SyncSender<Filled>,
    pub(super) counters: &'a Counters,
    pub(super) interruption: &'a Interruption,
    pub(super) sampler: Sampler,
    /// Keys of values that are NULL: those of all readers, and those that this one has not passed
    /// on.
    pub(super) absent: Option<(&'a Mutex<AbsentKeys>, KeySet)>,
    pub(super) kept: &'a Mutex<Kept>,
    /// Rows received.
    pub(super) rows: u64,
    /// Rows received when the part began.
    pub(super) part_start: u64,
    /// Rows that are counted in the counters.
    pub(super) counted_rows: u64,
}

/// The sink of the entries of a row.
struct EntrySink<'s> {
    batch: &'s mut Batch,
    absent: Option<&'s mut KeySet>,
    source: u16,
}

impl EntrySink<'_> {
    /// Returns the position of a row for messages about duplicates.
    fn position(&self, row: u64) -> u64 {
        u64::from(self.source) << 48 | (row & ((1 << 48) - 1))
    }
}

impl RowSink for EntrySink<'_> {
    fn row(
        &mut self,
        row: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        self.batch.push_with_position(self.position(row), key, value)
    }

    fn absent(&mut self, key: &[u8]) {
        if let Some(absent) = &mut self.absent {
            absent.insert(key);
        }
    }
}

impl BatchReceiver<'_> {
    /// Keeps the current batch with those of the part, or passes all of them on.
    fn next_batch(&mut self) -> Result<(), Stop> {
        let batch = std::mem::replace(&mut self.batch, self.empty.another());
        self.held.push(batch);
        self.can_drop_part &= self.held.len() * BATCH_BYTES <= MAX_HELD_BYTES;
        if self.can_drop_part { Ok(()) } else { self.pass_on() }
    }

    /// Counts the rows received so far.
    fn count_rows(&mut self) {
        let new = self.rows.wrapping_sub(self.counted_rows);
        self.counters.rows.fetch_add(new, Ordering::Relaxed);
        self.counted_rows = self.rows;
    }

    fn pass_on(&mut self) -> Result<(), Stop> {
        for batch in self.held.drain(..) {
            let entries = batch.len() as u64;
            // Fails if the writer failed, which is reported.
            self.filled.send(Filled { batch, entries }).map_err(|_| Stop::Enough)?;
        }
        Ok(())
    }
}

impl RowReceiver for BatchReceiver<'_> {
    fn set_columns(&mut self, names: &[String]) -> Result<(), Stop> {
        self.mapper = Some(self.entries.mapper(self.place.name(), names)?);
        Ok(())
    }

    fn begin_file(&mut self, name: &str) {
        self.place.begin_file(name, self.rows);
    }

    fn row(&mut self, row: &dyn Row) -> Result<(), Stop> {
        self.rows += 1;
        if self.rows.is_multiple_of(CHECK_ROWS) {
            self.count_rows();
            if self.interruption.is_set() {
                return Err(Stop::Enough);
            }
        }
        let Some(mapper) = &mut self.mapper else { return Ok(()) };
        let absent = self.absent.as_mut().map(|(_, keys)| keys);
        let mut sink = EntrySink { batch: &mut self.batch, absent, source: self.number };
        let added = mapper.add(self.rows, row, &mut sink);
        added.map_err(|fault| self.place.fault(self.rows, fault))?;
        self.sampler.offer(mapper.mapping(), row);
        if let Some((all, keys)) = self.absent.as_mut().filter(|(_, keys)| keys.is_full()) {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.add(keys).map_err(Stop::Fault)?;
        }
        if self.batch.is_full() {
            self.next_batch()?;
        }
        Ok(())
    }

    fn begin_part(&mut self) {
        self.place.begin_range();
        self.can_drop_part = true;
        self.part_start = self.rows;
    }

    fn end_part(&mut self) -> Result<(), Stop> {
        if !self.batch.is_empty() {
            let batch = std::mem::replace(&mut self.batch, self.empty.another());
            self.held.push(batch);
        }
        self.can_drop_part = false;
        self.pass_on()
    }

    fn drop_part(&mut self) -> bool {
        self.held.clear();
        self.batch = self.empty.another();
        self.rows = self.part_start;
        // Rows of the part that were counted are taken back.
        self.count_rows();
        self.can_drop_part
    }

    fn skip_row(&mut self) {
        self.rows += 1;
    }

    fn count_bytes(&mut self, bytes: u64) {
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for BatchReceiver<'_> {
    fn drop(&mut self) {
        self.count_rows();
        let Ok(mut kept) = self.kept.lock() else { return };
        kept.sample.append(&mut self.sampler.take());
        if let Some((_, absent)) = self.absent.take() {
            kept.absent.append(&absent);
        }
    }
}
