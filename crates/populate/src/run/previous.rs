//! The last generation: the current one of the destination, else the file at the path of the
//! output. A run whose publication failed, or that was rolled back, did not build it.

use super::publication::runtime;
use crate::error::{Error, Result};
use crate::job::Job;
use nuthatch_delivery::{
    Destination, FollowOptions, Follower, TrustedKey, generations, has_contents,
};
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
        let Some(publish) = &job.publish else { return Self::of_output(job) };
        let destination = Destination::open(&publish.destination)?;
        let trusted = publish.trusted_keys.iter().map(|path| TrustedKey::read(path));
        let trusted = trusted.collect::<Result<Vec<_>, _>>()?;
        let manifest = match runtime()?.block_on(generations(&destination, &trusted)) {
            Ok(manifest) => manifest,
            Err(nuthatch_delivery::Error::NothingPublished { .. }) => return Self::of_output(job),
            Err(error) => return Err(error.into()),
        };
        // A file that is damaged, or of another kind, is not the last generation.
        if has_contents(manifest.current(), &job.output).unwrap_or(false) {
            return Self::of_output(job);
        }
        let folder = TemporaryFolder::beside(&job.output)?;
        let options = FollowOptions { trusted_keys: trusted, ..FollowOptions::default() };
        let mut follower = Follower::open(destination, &folder.0, options)?;
        let swapped = runtime()?.block_on(follower.check(|_| {}))?;
        let snapshot = swapped.map(|swapped| Snapshot::open(swapped.path)).transpose()?;
        Ok(Self { snapshot, _folder: Some(folder) })
    }

    /// Opens the file at the path of the output, if there is one.
    fn of_output(job: &Job) -> Result<Self> {
        let exists = job.output.exists();
        let opened = exists.then(|| Snapshot::open(&job.output)).transpose();
        let snapshot = opened.map_err(|error| {
            Error::Job(format!(
                "{}: the last generation cannot be read: {error}; \
                 remove the file to run without it",
                job.output.display()
            ))
        })?;
        Ok(Self { snapshot, _folder: None })
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }
}

/// A folder that is removed when it is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder beside a file, or takes the one that a run left which was killed.
    fn beside(file: &Path) -> Result<Self> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let path = file.with_file_name(format!(".{name}.last"));
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
