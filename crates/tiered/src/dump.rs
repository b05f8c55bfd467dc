//! Writes the items of the memory to disk when the cache is closed.

use crate::convert::record_of;
use crate::options::Event;
use crate::shared::Shared;
use nuthatch_cache::{Item, Session};
use nuthatch_tier::{Error, Tier};
use std::time::Instant;

/// Items that are examined between two looks at the time.
const ITEMS_PER_STEP: usize = 256;

/// The maximum of [`Item::frequency`].
const MAX_FREQUENCY: u32 = 3;

/// One byte is added for this many bytes of records, for the headers and the padding of batches and
/// files.
const OVERHEAD_RATIO: u64 = 64;

/// Writes the items that have no record, the most read ones first, until all are written or the
/// time `until` is reached. No other session may use the cache.
pub(crate) fn run(shared: &Shared, tier: &mut Tier, until: Instant) -> Result<(), Error> {
    let start = Instant::now();
    let Ok(mut session) = shared.cache.session() else { return Ok(()) };
    // From here on, files are not older than the dump.
    tier.seal()?;
    let last_old = tier.files().last().map_or(0, |file| file.number);
    let mut dump = Dump {
        shared,
        tier,
        until,
        last_old,
        is_full: false,
        written: 0,
        unchanged: 0,
        outdated: 0,
        unwritable: 0,
        is_cut: false,
    };
    let result = dump.make_room(&mut session).and_then(|()| dump.write_all(&mut session));
    let left_out = if dump.is_cut || result.is_err() {
        let stats = shared.cache.stats();
        let in_memory = stats.items - stats.items_on_disk;
        in_memory.saturating_sub(dump.written + dump.unchanged + dump.outdated)
    } else {
        // All others have expired.
        dump.unwritable
    };
    shared.state.report(Event::Dumped { items: dump.written, left_out, elapsed: start.elapsed() });
    result
}

struct Dump<'a> {
    shared: &'a Shared,
    tier: &'a mut Tier,
    until: Instant,
    /// The number of the last item file that was written before the dump.
    last_old: u64,
    /// Whether there is no space for more items.
    is_full: bool,
    written: u64,
    /// Items whose records are valid.
    unchanged: u64,
    /// Items of suspended partitions.
    outdated: u64,
    /// Items that a record cannot have.
    unwritable: u64,
    /// Whether it ended before all items were examined.
    is_cut: bool,
}

impl Dump<'_> {
    /// Removes the oldest item files until there is space for all items that have no record. This
    /// happens before the first item is written: items of the memory may have their records in
    /// these files.
    fn make_room(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        loop {
            let mut needed = 0;
            let records = &*self.shared.records;
            self.scan(session, |_, item| {
                if let Some(record) = record_of(item, 0).filter(|_| !item.has_record(records)) {
                    needed += record.stored_len();
                }
                Ok(())
            })?;
            needed += needed / OVERHEAD_RATIO;
            let goal = self.tier.max_bytes().saturating_sub(needed);
            if self.is_over() || self.tier.used_bytes() <= goal {
                return Ok(());
            }
            while self.tier.used_bytes() > goal {
                if !self.remove_oldest()? {
                    return Ok(());
                }
            }
        }
    }

    fn write_all(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        self.scan(session, Self::write)
    }

    fn is_over(&self) -> bool {
        self.is_full || Instant::now() >= self.until || self.shared.state.is_dump_cancelled()
    }

    /// Calls `visit` with each item, the most read ones first, until the dump is over.
    fn scan(
        &mut self,
        session: &mut Session<'_>,
        mut visit: impl FnMut(&mut Self, &Item<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for frequency in (0..=MAX_FREQUENCY).rev() {
            let mut cursor = 0;
            loop {
                if self.is_over() {
                    self.is_cut = true;
                    return Ok(());
                }
                let guard = session.guard_without_freeing();
                let mut result = Ok(());
                cursor = guard.scan_frequency(cursor, ITEMS_PER_STEP, frequency, |item| {
                    if result.is_ok() {
                        result = visit(self, item);
                    }
                });
                result?;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, item: &Item<'_>) -> Result<(), Error> {
        let Shared { cache, records, .. } = self.shared;
        let hash = cache.hash(item.key());
        if self.shared.is_suspended(hash) {
            self.outdated += 1;
            return Ok(());
        }
        if item.has_record(&**records) {
            self.unchanged += 1;
            return Ok(());
        }
        let Some(record) = record_of(item, hash.to_u64()) else {
            self.unwritable += 1;
            return Ok(());
        };
        while !self.is_full {
            match self.tier.append(&record) {
                Err(Error::BudgetReached { .. }) => {
                    self.is_full = !self.remove_oldest()?;
                    self.is_cut |= self.is_full;
                }
                Err(Error::TooLong { .. }) => {
                    self.unwritable += 1;
                    break;
                }
                Err(error) => return Err(error),
                Ok(_) => {
                    self.written += 1;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Removes the oldest item file, but none of the dump: those have the items that were read
    /// most. Returns `false` if there is no other.
    fn remove_oldest(&mut self) -> Result<bool, Error> {
        let oldest = self.tier.files().first().map(|file| file.number);
        if oldest.is_none_or(|oldest| oldest > self.last_old) {
            return Ok(false);
        }
        Ok(self.tier.remove_oldest()?.is_some())
    }
}
