//! The disk cache of sccache, with one file per entry.

use crate::buffer::Buffer;
use crate::systems::{Entrant, System};
use sccache::lru_disk_cache::LruDiskCache;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The cache in a mutex, since its operations require exclusive access.
pub struct Sccache(Mutex<LruDiskCache>);

fn key_of(key: u64) -> String {
    format!("{key:016x}")
}

pub const ENTRANT: Entrant =
    Entrant::new("sccache", |path, limit| Box::new(Sccache::open(path, limit)));

impl Sccache {
    fn open(folder: &Path, limit: u64) -> Self {
        Self(Mutex::new(LruDiskCache::new(folder, limit).expect("a cache")))
    }
}

impl System for Sccache {
    fn put(&self, key: u64, data: &[u8]) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert_bytes(key_of(key), data).expect("a put");
    }

    fn get(&self, key: u64, out: &mut Buffer) -> bool {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_file(key_of(key));
        let Ok(mut file) = file else { return false };
        let len = file.metadata().expect("a file").len() as usize;
        file.read_exact(&mut out[..len]).expect("a read");
        true
    }
}
