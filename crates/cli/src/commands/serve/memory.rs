//! The memory of the cache and of the store beside it.

use crate::outcome::Failure;
use crate::process::{self, MemoryLimit};
use crate::settings::{LoadedSettings, Settings};
use nuthatch_cache::{Cache, Error as CacheError, Eviction, Options as CacheOptions};
use nuthatch_server::WarmRestart;
use nuthatch_units::bytes;

/// Creates the cache. If items of the last run are to be restored, they fit its options.
pub(super) fn cache(
    loaded: &LoadedSettings,
    warm_restart: Option<&WarmRestart>,
) -> Result<Cache, Failure> {
    check_memory(loaded)?;
    let options = cache_options(&loaded.settings);
    let options = match warm_restart {
        Some(warm_restart) => warm_restart.cache_options(options),
        None => options,
    };
    Cache::new(options).map_err(|error| cache_failure(loaded, error))
}

/// Checks that the process can have the memory of the budgets.
pub(in crate::commands) fn check_memory(loaded: &LoadedSettings) -> Result<(), Failure> {
    let all = loaded.settings.memory.saturating_add(store_memory(&loaded.settings));
    let limit = MemoryLimit::of_this_process();
    process::check_memory(limit.as_ref(), all).map_err(|problem| loaded.invalid("memory", problem))
}

/// Returns the options of the cache.
pub(super) fn cache_options(settings: &Settings) -> CacheOptions {
    let eviction = if settings.eviction == "none" { Eviction::None } else { Eviction::S3Fifo };
    CacheOptions::new().memory(settings.memory).eviction(eviction)
}

/// Returns the failure if the cache cannot be created.
pub(super) fn cache_failure(loaded: &LoadedSettings, error: CacheError) -> Failure {
    let problem = match error {
        CacheError::Options { option: "memory", expected, .. } => {
            let memory = bytes(loaded.settings.memory);
            format!("expected {expected}, found {memory}; give a size such as 4GiB")
        }
        error => error.to_string(),
    };
    loaded.invalid("memory", problem)
}

/// Lowers the default budget if the process cannot have as much memory.
pub(super) fn set_default_memory(loaded: &mut LoadedSettings) {
    if !loaded.is_set("memory") {
        let limit = MemoryLimit::of_this_process();
        let limit = limit.map(|limit| limit.beside(store_memory(&loaded.settings)));
        let memory = &mut loaded.settings.memory;
        *memory = process::default_memory("memory", *memory, limit.as_ref());
    }
}

/// Returns the budget of the store; 0 without a store.
pub(super) fn store_memory(settings: &Settings) -> u64 {
    settings.store.as_ref().map_or(0, |_| settings.store_memory)
}
