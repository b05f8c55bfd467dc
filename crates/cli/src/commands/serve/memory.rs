//! The memory of the cache and of the store beside it.

use crate::outcome::Failure;
use crate::process::{self, MemoryLimit};
use crate::settings::{Configuration, Loaded};
use nuthatch_cache::{Cache, Error as CacheError, Eviction, Options as CacheOptions};
use nuthatch_units::bytes;

pub(super) fn cache(loaded: &Loaded) -> Result<Cache, Failure> {
    let Configuration { memory, eviction, .. } = loaded.configuration;
    let all = memory.saturating_add(store_memory(&loaded.configuration));
    let limit = MemoryLimit::of_this_process();
    process::check_memory(limit.as_ref(), all)
        .map_err(|problem| loaded.invalid("memory", problem))?;
    let eviction = if eviction == "none" { Eviction::None } else { Eviction::S3Fifo };
    let options = CacheOptions::new().memory(memory).eviction(eviction);
    Cache::new(options).map_err(|error| {
        let problem = match error {
            CacheError::Options { option: "memory", expected, .. } => {
                format!("expected {expected}, found {}; give a size such as 4GiB", bytes(memory))
            }
            error => error.to_string(),
        };
        loaded.invalid("memory", problem)
    })
}

/// Lowers the default budget where this process cannot have as much.
pub(super) fn set_default_memory(loaded: &mut Loaded) {
    if !loaded.is_given("memory") {
        let limit = MemoryLimit::of_this_process();
        let limit = limit.map(|limit| limit.beside(store_memory(&loaded.configuration)));
        let memory = &mut loaded.configuration.memory;
        *memory = process::default_memory("memory", *memory, limit.as_ref());
    }
}

/// Returns the budget of the store; 0 without a store.
fn store_memory(configuration: &Configuration) -> u64 {
    configuration.store.as_ref().map_or(0, |_| configuration.store_memory)
}
