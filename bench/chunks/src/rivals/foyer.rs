//! Foyer as a disk cache, with 16 MiB of memory in front of it.

use crate::buffer::Buffer;
use crate::systems::{Entrant, System};
use foyer::{BlockEngineConfig, DeviceBuilder, FsDeviceBuilder, HybridCache, HybridCacheBuilder};
use std::path::Path;
use tokio::runtime::{Builder, Runtime};

pub struct Foyer {
    cache: HybridCache<u64, Vec<u8>>,
    runtime: Runtime,
}

/// Its flusher panics on entries of 8 MiB, so puts are limited to 1 MiB.
pub const ENTRANT: Entrant = Entrant {
    drops: true,
    max_put_bytes: 1 << 20,
    ..Entrant::new("foyer", |path, limit| Box::new(Foyer::open(path, limit)))
};

impl Foyer {
    fn open(folder: &Path, limit: u64) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let cache = runtime.block_on(async {
            let device = FsDeviceBuilder::new(folder).with_capacity(limit as usize).build();
            HybridCacheBuilder::new()
                .memory(16 << 20)
                .with_weighter(|_: &u64, value: &Vec<u8>| value.len())
                .storage()
                .with_engine_config(BlockEngineConfig::new(device.expect("a device")))
                .build()
                .await
                .expect("a cache")
        });
        Self { cache, runtime }
    }
}

impl System for Foyer {
    fn put(&self, key: u64, data: &[u8]) {
        let _in = self.runtime.enter();
        self.cache.insert(key, data.to_vec());
    }

    fn get(&self, key: u64, out: &mut Buffer) -> bool {
        let found = self.runtime.block_on(async { self.cache.get(&key).await });
        match found.expect("a get") {
            Some(entry) => {
                let value = entry.value();
                out[..value.len()].copy_from_slice(value);
                true
            }
            None => false,
        }
    }

    fn settle(&self) {
        self.runtime.block_on(async { self.cache.storage().wait().await });
    }
}
