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

/// Writes the items that have no record, the most read ones first, until all are written or the
/// time `until` is reached. No other session may use the cache.
pub(crate) fn run(shared: &Shared, tier: &mut Tier, until: Instant) -> Result<(), Error> {
    let start = Instant::now();
    let Ok(mut session) = shared.cache.session() else { return Ok(()) };
    let mut dump = Dump { shared, tier, written: 0, unchanged: 0 };
    let result = dump.all(&mut session, until);
    let stats = shared.cache.stats();
    let in_memory = stats.items - stats.items_on_disk;
    let left_out = in_memory.saturating_sub(dump.written + dump.unchanged);
    shared.state.report(Event::Dumped { items: dump.written, left_out, elapsed: start.elapsed() });
    result
}

struct Dump<'a> {
    shared: &'a Shared,
    tier: &'a mut Tier,
    written: u64,
    /// Items whose records are valid.
    unchanged: u64,
}

impl Dump<'_> {
    fn all(&mut self, session: &mut Session<'_>, until: Instant) -> Result<(), Error> {
        for frequency in (0..=MAX_FREQUENCY).rev() {
            let mut cursor = 0;
            loop {
                if Instant::now() >= until || self.shared.state.is_dump_cancelled() {
                    return Ok(());
                }
                let guard = session.guard_without_freeing();
                let mut result = Ok(());
                cursor = guard.scan_frequency(cursor, ITEMS_PER_STEP, frequency, |item| {
                    if result.is_ok() {
                        result = self.write(item);
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
        if item.has_record(&**records) {
            self.unchanged += 1;
            return Ok(());
        }
        let hash = cache.hash(item.key()).to_u64();
        let Some(record) = record_of(item, hash) else { return Ok(()) };
        loop {
            match self.tier.append(&record) {
                Err(Error::BudgetReached { .. }) if self.tier.remove_oldest()?.is_some() => {}
                Err(Error::TooLong { .. }) => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) => {
                    self.written += 1;
                    return Ok(());
                }
            }
        }
    }
}
