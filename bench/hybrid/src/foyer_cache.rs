//! Foyer's `HybridCache`.

use crate::systems::{Limits, Session, System};
use crate::workload::{KEY_LEN, Workload};
use foyer::{BlockEngineConfig, DeviceBuilder, FsDeviceBuilder, HybridCache, HybridCacheBuilder};
use nuthatch_bench::Result;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// Bytes between two waits while the cache is filled: a quarter of the queue from which the cache
/// drops entries.
const BYTES_PER_WAIT: usize = 4 << 20;

struct Foyer {
    cache: HybridCache<u64, Vec<u8>>,
    runtime: Runtime,
    workload: Arc<Workload>,
}

/// Opens the cache with direct I/O.
pub(crate) fn open(limits: &Limits) -> Result<Box<dyn System>> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let device = FsDeviceBuilder::new(&limits.folder)
        .with_capacity(usize::try_from(limits.disk)?)
        .with_direct(true)
        .build()?;
    let cache = runtime.block_on(
        HybridCacheBuilder::new()
            .with_flush_on_close(false)
            .memory(usize::try_from(limits.memory)?)
            .with_weighter(|_: &u64, value: &Vec<u8>| KEY_LEN + value.len())
            .storage()
            .with_engine_config(BlockEngineConfig::new(device))
            .build(),
    )?;
    Ok(Box::new(Foyer { cache, runtime, workload: Arc::clone(&limits.workload) }))
}

impl System for Foyer {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Operations { foyer: self, unwaited: 0 }))
    }

    fn settle(&self) -> Result<()> {
        self.runtime.block_on(self.cache.storage().wait());
        Ok(())
    }
}

struct Operations<'c> {
    foyer: &'c Foyer,
    /// Bytes stored since the last wait.
    unwaited: usize,
}

impl Session for Operations<'_> {
    fn get(&mut self, number: u32) -> Result<Option<bool>> {
        let Foyer { cache, runtime, workload } = self.foyer;
        // An entry in memory needs no runtime.
        let entry = match cache.get(&u64::from(number)).try_unwrap() {
            Ok(entry) => Some(entry),
            Err(get) => runtime.block_on(get)?,
        };
        Ok(entry.map(|entry| workload.is_value(number, entry.value())))
    }

    fn set(&mut self, number: u32, value: &[u8]) -> Result<()> {
        self.foyer.cache.insert(u64::from(number), value.to_vec());
        Ok(())
    }

    fn fill(&mut self, number: u32, value: &[u8]) -> Result<()> {
        // An entry takes whole pages on disk.
        self.unwaited += value.len().next_multiple_of(4096);
        if self.unwaited >= BYTES_PER_WAIT {
            self.unwaited = 0;
            self.foyer.settle()?;
        }
        self.set(number, value)
    }
}
