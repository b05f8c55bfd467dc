//! The last generation: the file at the path of the output, else the one that is published.

use super::publication::runtime;
use crate::error::{Error, Result};
use crate::job::{Job, Publish};
use nuthatch_delivery::{Destination, FollowOptions, Follower, TrustedKey};
use nuthatch_snapshot::Snapshot;
use std::path::{Path, PathBuf};

/// The last generation, if a job needs it and there is one.
pub(super) struct Previous {
    snapshot: Option<Snapshot>,
    /// A folder that is removed at the end.
    _folder: Option<TemporaryFolder>,
}

impl Previous {
    /// Opens the last generation, after fetching it if it is not at the path of the output.
    pub(super) fn find(job: &Job) -> Result<Self> {
        let none = Self { snapshot: None, _folder: None };
        let gates = &job.gates;
        let is_compared = gates.max_entry_change.is_some()
            || gates.max_byte_change.is_some()
            || gates.max_value_change.is_some();
        if !is_compared && !job.is_incremental() {
            return Ok(none);
        }
        if job.output.exists() {
            return Ok(Self { snapshot: Some(Snapshot::open(&job.output)?), ..none });
        }
        let Some(publish) = &job.publish else { return Ok(none) };
        let folder = TemporaryFolder::beside(&job.output)?;
        let Some(path) = fetch(publish, &folder.0)? else { return Ok(none) };
        Ok(Self { snapshot: Some(Snapshot::open(path)?), _folder: Some(folder) })
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }
}

/// Fetches the current generation. Returns `None` if nothing is published.
fn fetch(publish: &Publish, folder: &Path) -> Result<Option<PathBuf>> {
    let destination = Destination::open(&publish.destination)?;
    let trusted = publish.trusted_keys.iter().map(|path| TrustedKey::read(path));
    let trusted_keys = trusted.collect::<Result<Vec<_>, _>>()?;
    let options = FollowOptions { trusted_keys, ..FollowOptions::default() };
    let mut follower = Follower::open(destination, folder, options)?;
    match runtime()?.block_on(follower.check(|_| {})) {
        Ok(swapped) => Ok(swapped.map(|swapped| swapped.path)),
        Err(nuthatch_delivery::Error::NothingPublished { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A folder that is removed when it is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder beside a file.
    fn beside(file: &Path) -> Result<Self> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let path = file.with_file_name(format!(".{name}.last-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| Error::System(format!("{}: create: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
