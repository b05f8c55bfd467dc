//! Objects that are read through a cache, from an origin whose faults a test sets.

mod basics;
mod changes;
mod faults;
mod files;
mod model;
mod not_kept;
mod processes;
mod secrets;
mod secure;
mod server;
mod sharing;
mod stores;
mod unavailable;

use nuthatch_chunks::Options;
use nuthatch_origins::{ObjectCache, Settings};
use std::time::Duration;
use tempfile::TempDir;

/// The length of blocks in these tests.
const BLOCK: u64 = 4096;

/// Returns settings with small blocks and short retry delays.
fn quick() -> Settings {
    let pause = Duration::from_millis(1);
    Settings::new()
        .block_len(BLOCK)
        .max_gap(0)
        .max_request_len(8 * BLOCK)
        .read_ahead(8 * BLOCK)
        .retries(3)
        .retry_delays(pause, 10 * pause)
}

/// A cache in a temporary folder.
struct Place {
    folder: TempDir,
    cache: ObjectCache,
}

impl Place {
    fn new(settings: Settings) -> Self {
        let folder = TempDir::new().expect("a folder");
        let options = Options::new().limit(64 << 20).min_free(0);
        let cache = ObjectCache::open(folder.path(), &options, settings).expect("a cache");
        Self { folder, cache }
    }
}
