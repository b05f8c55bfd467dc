//! The disk cache of the xet-core client.

use crate::buffer::Buffer;
use crate::systems::{Entrant, System};
use std::path::Path;
use tokio::runtime::{Builder, Runtime};
use xet_client::cas_types::{ChunkRange, Key};
use xet_client::chunk_cache::{CacheConfig, ChunkCache, DiskCache};
use xet_core_structures::merklehash::MerkleHash;
use xet_runtime::config::XetConfig;

pub struct Xet {
    cache: DiskCache,
    runtime: Runtime,
}

fn key_of(key: u64) -> Key {
    let spread = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Key { prefix: "default".to_owned(), hash: MerkleHash::from([spread, key, 3, 4]) }
}

pub const ENTRANT: Entrant = Entrant::new("xet", |path, limit| Box::new(Xet::open(path, limit)));

impl Xet {
    fn open(folder: &Path, limit: u64) -> Self {
        let config = CacheConfig { cache_directory: folder.to_owned(), cache_size: limit };
        std::fs::create_dir_all(folder).expect("a folder");
        let cache = DiskCache::initialize(&XetConfig::new(), &config).expect("a cache");
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self { cache, runtime: runtime.expect("a runtime") }
    }
}

impl System for Xet {
    fn put(&self, key: u64, data: &[u8]) {
        let put = async {
            let indices = [0, data.len() as u32];
            self.cache.put(&key_of(key), &ChunkRange::new(0, 1), &indices, data).await
        };
        self.runtime.block_on(put).expect("a put");
    }

    fn get(&self, key: u64, out: &mut Buffer) -> bool {
        let get = async { self.cache.get(&key_of(key), &ChunkRange::new(0, 1)).await };
        match self.runtime.block_on(get).expect("a get") {
            Some(found) => {
                out.take(found.data);
                true
            }
            None => false,
        }
    }
}
