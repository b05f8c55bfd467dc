//! The snapshots whose keys are served beside those of the cache.

use super::memory::{check_memory, store_memory};
use crate::outcome::Failure;
use crate::process::MemoryLimit;
use crate::settings::{LoadedSettings, Settings};
use nuthatch_server::state::{OpenError, SnapshotMemory, SnapshotSource, Snapshots};
use nuthatch_units::bytes;
use std::collections::BTreeSet;

/// Returns the snapshots to serve, with their prefixes.
///
/// # Errors
///
/// Fails if a prefix is that of no snapshot, a snapshot has two, or two snapshots have the same
/// name or prefix.
pub(super) fn sources(loaded: &LoadedSettings) -> Result<Vec<SnapshotSource>, Failure> {
    let Settings { snapshot, snapshot_prefix, .. } = &loaded.settings;
    let with_usual_prefix = snapshot.iter().map(|named| SnapshotSource {
        name: named.name.clone(),
        prefix: format!("{}:", named.name).into_bytes(),
        path: named.path.clone(),
    });
    let mut sources: Vec<_> = with_usual_prefix.collect();
    let mut with_own_prefix = BTreeSet::new();
    let invalid = |problem| loaded.invalid("snapshot-prefix", problem);
    for text in snapshot_prefix {
        let (source, prefix) = prefixed(&mut sources, text).map_err(invalid)?;
        if !with_own_prefix.insert(source.name.clone()) {
            let name = &source.name;
            return Err(invalid(format!(
                "expected one prefix for each snapshot, found {name} again"
            )));
        }
        source.prefix = prefix.as_bytes().to_vec();
    }
    Snapshots::check(&sources).map_err(|problem| loaded.invalid("snapshot", problem))?;
    Ok(sources)
}

/// Returns the snapshot to which a prefix applies, and the prefix: `NAME=PREFIX`, or `PREFIX` if
/// there is one snapshot.
fn prefixed<'s, 't>(
    sources: &'s mut [SnapshotSource],
    text: &'t str,
) -> Result<(&'s mut SnapshotSource, &'t str), String> {
    match (sources, text.split_once('=')) {
        ([only], None) => Ok((only, text)),
        (sources, Some((name, prefix))) => {
            let found = sources.iter_mut().find(|source| source.name == name);
            let unknown = || format!("expected the name of a snapshot before '=', found {text:?}");
            Ok((found.ok_or_else(unknown)?, prefix))
        }
        (_, None) => Err(format!("expected NAME=PREFIX, found {text:?}")),
    }
}

/// Opens all snapshots, populates and verifies them.
///
/// # Errors
///
/// Fails if one is missing, damaged, or does not fit in memory beside the cache.
pub(super) fn snapshots(loaded: &LoadedSettings) -> Result<Option<Snapshots>, Failure> {
    let sources = sources(loaded)?;
    if sources.is_empty() {
        return Ok(None);
    }
    check_memory(loaded)?;
    let settings = &loaded.settings;
    let others = settings.memory.saturating_add(store_memory(settings));
    let limit = MemoryLimit::of_this_process();
    let memory = SnapshotMemory {
        max_bytes: limit.as_ref().map(|limit| limit.beside(others).bytes),
        allows_oversize: settings.snapshot_oversize == "allow",
    };
    match Snapshots::open(sources, memory) {
        Ok(snapshots) => Ok(Some(snapshots)),
        Err(OpenError::TooLarge { name, found, max }) => {
            let (found, max, others) = (bytes(found), bytes(max), bytes(others));
            let source = limit.map_or_else(String::new, |limit| limit.source);
            Err(loaded.invalid(
                "snapshot",
                format!(
                    "{name} has {found}, and {max} are left beside {others} of other budgets \
                     ({source}); lower --memory, or set --snapshot-oversize allow to read it from \
                     the disk"
                ),
            ))
        }
        Err(error) => {
            let named = loaded.source("snapshot").named();
            Err(Failure::Error(format!("{named}: {error}")))
        }
    }
}
