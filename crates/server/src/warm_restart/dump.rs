//! Writes the items of a cache to a dump.

use super::WarmRestart;
use crate::compression::Compression;
use crate::item_bits::may_restore;
use crate::log;
use nuthatch_cache::{Cache, Item, Session};
use nuthatch_tier::{Error, Record, Tier};
use std::time::Instant;

/// Items that are examined between two checks of the time.
const ITEMS_PER_STEP: usize = 256;

/// The maximum of [`Item::frequency`].
const MAX_FREQUENCY: u32 = 3;

/// What a dump contains.
#[derive(Default)]
struct Dumped {
    /// The number of items.
    items: u64,
    /// Bytes of keys and values.
    bytes: u64,
    /// The number of items that other nodes of the cluster have served since.
    outdated: u64,
    /// Whether the writing ended before all items were examined.
    is_cut: bool,
}

impl WarmRestart {
    /// Writes the items of the cache, the most read ones first, until all are written or the
    /// maximum time has passed since `stop_began`. No other session may use the cache. Writes
    /// nothing after [`cancel`](WarmRestart::cancel), or if the server has dumped already.
    pub(crate) fn dump(&self, (cache, compression): (&Cache, &Compression), stop_began: Instant) {
        let Some(tier) = self.lock().take() else { return };
        if self.is_cancelled() {
            return log::dump_cancelled();
        }
        let start = Instant::now();
        log::dumping(self.max_dump_time);
        let mut dumped = Dumped::default();
        let until = stop_began + self.max_dump_time;
        let result = self.write(tier, (cache, compression), until, &mut dumped);
        // The folder is not marked as closed then, so the next server finds no dump.
        let result =
            result.and_then(|tier| if self.is_cancelled() { Ok(()) } else { tier.close() });
        match result {
            Ok(()) if self.is_cancelled() => log::dump_cancelled(),
            Ok(()) => {
                let left_out = cache.len().saturating_sub(dumped.items + dumped.outdated);
                if dumped.is_cut {
                    log::dump_cut(dumped.items, left_out);
                }
                log::dumped(dumped.items, dumped.bytes, left_out, start.elapsed());
            }
            Err(error) => log::dump_lost(&error),
        }
    }

    /// Writes items until all are written, the time `until` is reached, or the disk is full. The
    /// items that were written until then form a valid dump.
    fn write(
        &self,
        mut tier: Tier,
        (cache, compression): (&Cache, &Compression),
        until: Instant,
        dumped: &mut Dumped,
    ) -> Result<Tier, Error> {
        tier.clear()?;
        let Ok(mut session) = cache.session() else { return Ok(tier) };
        for frequency in (0..=MAX_FREQUENCY).rev() {
            let mut cursor = 0;
            loop {
                if self.is_cancelled() || Instant::now() >= until {
                    dumped.is_cut = true;
                    return Ok(tier);
                }
                let scan = (frequency, cursor, compression);
                match self.step(&mut session, scan, &mut tier, dumped) {
                    Ok(0) => break,
                    Ok(next) => cursor = next,
                    Err(error) => {
                        // What was written before is a dump, if it can be closed.
                        log::dump_failed(&error);
                        return Ok(tier);
                    }
                }
            }
        }
        Ok(tier)
    }

    /// Writes the next items with a frequency. Returns the cursor of those that follow, or 0.
    fn step(
        &self,
        session: &mut Session<'_>,
        (frequency, cursor, compression): (u32, u64, &Compression),
        tier: &mut Tier,
        dumped: &mut Dumped,
    ) -> Result<u64, Error> {
        let guard = session.guard();
        let mut result = Ok(());
        let mut buffer = Vec::new();
        let next = guard.scan_frequency(cursor, ITEMS_PER_STEP, frequency, |item| {
            if self.is_suspended(item.key()) {
                dumped.outdated += 1;
            } else if result.is_ok() && may_restore(item) && !self.is_cancelled() {
                let hash = self.hash(item.key());
                // A value without memory to decompress it is left out.
                let Ok(item) = compression.raw_item(*item, &mut buffer) else { return };
                match tier.append(&record_of(&item, hash)) {
                    Ok(_) => {
                        dumped.items += 1;
                        dumped.bytes += (item.key().len() + item.value().len()) as u64;
                    }
                    // A key of 65,536 bytes, one more than a record can have, is left out.
                    Err(Error::TooLong { .. }) => {}
                    Err(error) => result = Err(error),
                }
            }
        });
        result.map(|()| next)
    }
}

fn record_of<'i>(item: &'i Item<'_>, hash: u64) -> Record<'i> {
    Record {
        key: item.key(),
        value: item.value(),
        hash,
        frequency: item.frequency() as u8,
        expires_ms: item.expires_ms(),
        cas: item.cas(),
        client_flags: Some(item.flags()).filter(|flags| *flags != 0),
        ..Record::default()
    }
}
