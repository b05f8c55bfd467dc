//! The disk tier of the cache.

use super::memory::{cache_failure, cache_options, check_memory};
use crate::outcome::Failure;
use crate::settings::LoadedSettings;
use nuthatch_cluster::slot::slot_of;
use nuthatch_server::{Compression, KeptSlots, log_disk_event};
use nuthatch_tiered::{KeptPartitions, OpenError, Options, TieredCache, WhenBehind};
use std::sync::Arc;

/// The folder of the items in that of `data-dir`.
pub(super) const FOLDER: &str = "items";

/// Checks the settings of the disk tier.
pub(super) fn check(loaded: &LoadedSettings) -> Result<(), Failure> {
    let settings = &loaded.settings;
    if settings.disk == 0 {
        return Ok(());
    }
    let problem = if settings.disk < Options::MIN_BYTES {
        "expected 0 or at least 16MiB"
    } else if settings.data_dir.is_none() {
        "expected a folder for the items, found none; name one with --data-dir"
    } else if settings.eviction == "none" {
        "expected --eviction s3fifo, found none: items go to disk when they are evicted"
    } else {
        return Ok(());
    };
    Err(loaded.invalid("disk", problem.to_owned()))
}

/// Opens the disk tier in the locked folder of `data-dir` and creates its cache, if there is to be
/// one. Items whose value this compression cannot decompress are lost. In a cluster, only the items
/// of slots that were kept are recovered.
pub(super) fn disk(
    loaded: &LoadedSettings,
    compression: Option<&Arc<Compression>>,
    kept: Option<&KeptSlots>,
) -> Result<Option<Arc<TieredCache>>, Failure> {
    let settings = &loaded.settings;
    let Some(data_dir) = settings.data_dir.as_ref().filter(|_| settings.disk > 0) else {
        return Ok(None);
    };
    check_memory(loaded)?;
    let when_behind =
        if settings.disk_full == "wait" { WhenBehind::Wait } else { WhenBehind::Drop };
    let options = Options::new(data_dir.join(FOLDER), settings.disk);
    let mut options = options.when_behind(when_behind).on_event(log_disk_event);
    if let Some(compression) = compression.map(Arc::clone) {
        options = options.can_decompress(move |value| compression.can_decompress(value));
    }
    if let Some(kept) = kept {
        options = options.partitions(slot_of, kept_partitions(kept));
    }
    match TieredCache::open(cache_options(settings), &options) {
        Ok(tiered) => Ok(Some(Arc::new(tiered))),
        Err(OpenError::Cache(error)) => Err(cache_failure(loaded, error)),
        Err(error) => Err(Failure::Error(format!("{}: {error}", loaded.source("disk").named()))),
    }
}

/// Returns the slots that were kept, as partitions of the keys.
pub(super) fn kept_partitions(kept: &KeptSlots) -> KeptPartitions {
    let first_records = kept.slots.iter().map(|kept| (kept.slot, kept.first_record));
    KeptPartitions { folder_id: kept.folder_id, first_records: first_records.collect() }
}
