//! Nuthatch's cache with a disk tier.

use crate::systems::{Limits, Session, System, key};
use crate::workload::Workload;
use nuthatch_bench::Result;
use nuthatch_cache::{Options as CacheOptions, Outcome, Write};
use nuthatch_tiered::{Options, TieredCache, WhenBehind};
use std::sync::Arc;

struct Nuthatch {
    cache: TieredCache,
    workload: Arc<Workload>,
}

/// Opens the cache. Writers wait for the disk, so that the cache drops nothing while it is filled.
pub(crate) fn open(limits: &Limits) -> Result<Box<dyn System>> {
    let memory = CacheOptions::new().memory(limits.memory);
    let options = Options::new(&limits.folder, limits.disk).when_behind(WhenBehind::Wait);
    let cache = TieredCache::open(memory, &options)?;
    Ok(Box::new(Nuthatch { cache, workload: Arc::clone(&limits.workload) }))
}

struct Operations<'c>(&'c Nuthatch, nuthatch_cache::Session<'c>);

impl System for Nuthatch {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Operations(self, self.cache.cache().session()?)))
    }
}

impl Session for Operations<'_> {
    fn get(&mut self, number: u32) -> Result<Option<bool>> {
        let Nuthatch { cache, workload } = self.0;
        Ok(cache.run(&mut self.1, |guard| {
            let item = guard.get(&key(number));
            Ok(item.map(|item| workload.is_value(number, item.value())))
        })?)
    }

    fn set(&mut self, number: u32, value: &[u8]) -> Result<()> {
        let write = Write::new();
        match self.0.cache.run(&mut self.1, |guard| guard.set(&key(number), value, &write))? {
            Outcome::Stored => Ok(()),
            outcome => Err(format!("an unconditional write ended with {outcome:?}").into()),
        }
    }
}
