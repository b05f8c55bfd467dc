//! The dump of the items, which survives a restart of the server.

use super::disk::{FOLDER, kept_partitions};
use crate::outcome::Failure;
use crate::settings::LoadedSettings;
use nuthatch_cluster::slot::slot_of;
use nuthatch_server::{KeptSlots, WarmRestart};
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// Opens the folder of the dump in the locked folder of `data-dir`, if items are to survive a
/// restart: in a cluster, those of slots that were kept.
pub(super) fn warm_restart(
    loaded: &LoadedSettings,
    kept: Option<&KeptSlots>,
) -> Result<Option<Arc<WarmRestart>>, Failure> {
    let settings = &loaded.settings;
    let failure = |error| {
        let name = if settings.warm_restart { "warm-restart" } else { "data-dir" };
        Failure::Error(format!("{}: {error}", loaded.source(name).named()))
    };
    if settings.disk > 0 {
        // The items on disk survive anyway.
        return Ok(None);
    }
    if !settings.warm_restart {
        if let Some(data_dir) = &settings.data_dir {
            let discarded = WarmRestart::discard(&data_dir.join(FOLDER), settings.memory);
            let items = discarded.map_err(failure)?;
            if items > 0 {
                let text =
                    "the items in data-dir were removed, as neither disk nor warm-restart is set";
                warn!(target: "nuthatch::server", items, "{text}");
            }
        }
        return Ok(None);
    }
    let Some(data_dir) = &settings.data_dir else {
        let problem = "expected a folder for the items, found none; name one with --data-dir";
        return Err(loaded.invalid("warm-restart", problem.to_owned()));
    };
    let max_dump_time = Duration::from_millis(settings.dump_ms);
    let opened = WarmRestart::open(&data_dir.join(FOLDER), settings.memory, max_dump_time);
    let mut warm_restart = opened.map_err(failure)?;
    if let Some(kept) = kept {
        warm_restart = warm_restart.partitions(slot_of, &kept_partitions(kept));
    }
    Ok(Some(Arc::new(warm_restart)))
}
