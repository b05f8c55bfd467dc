//! The files of a generation: built from deltas, fetched, or linked from the last generation.

use super::bandwidth::{Pace, RangeLimits};
use super::deltas::{Built, Deltas, Failures, Plan};
use super::fetch::Fetch;
use super::folder::Folder;
use super::options::FollowOptions;
use super::swapped::{FetchResult, Fetched};
use crate::destination::Destination;
use crate::error::Result;
use crate::manifest::{DataFile, Generation, Manifest};
use nuthatch_snapshot::Snapshot;
use nuthatch_trace_context::span;
use std::collections::HashSet;
use std::path::PathBuf;

/// The files of a generation that come into a folder.
pub(super) struct GenerationFetch<'a> {
    pub(super) destination: &'a Destination,
    pub(super) folder: &'a Folder,
    pub(super) options: &'a FollowOptions,
    /// The last generation, whose files are used again.
    pub(super) last: Option<&'a Generation>,
    pub(super) delta_failures: &'a mut Failures,
    /// The length of ranges that suits the source.
    pub(super) pace: &'a Pace,
}

impl GenerationFetch<'_> {
    /// Fetches or builds all files of the current generation of a manifest, and moves
    /// them into its folder.
    pub(super) async fn run(
        mut self,
        manifest: &Manifest,
        progress: impl Fn(Fetched),
    ) -> Result<FetchResult> {
        let wanted = manifest.current();
        let reused: Vec<_> = wanted.files.iter().map(|file| self.local(file)).collect();
        let fetched = self.fetch(manifest, wanted, &reused, progress).await?;
        self.assemble(wanted, &reused)?;
        // Such as a part of a delta that could not be fetched.
        self.folder.remove_other_partials(&HashSet::new())?;
        Ok(fetched)
    }

    /// Returns the path of a file of the last generation with the same contents.
    fn local(&self, file: &DataFile) -> Option<PathBuf> {
        self.folder.find(file, self.last?)
    }

    /// Builds the files that are not in the folder from deltas, or fetches them, each as its
    /// partial file.
    async fn fetch(
        &mut self,
        manifest: &Manifest,
        wanted: &Generation,
        reused: &[Option<PathBuf>],
        progress: impl Fn(Fetched),
    ) -> Result<FetchResult> {
        let options = self.options.deltas;
        let deltas = Deltas::new(manifest, options);
        self.delta_failures.retain_of(&deltas);
        let plans = self.plans(&deltas, wanted, reused);
        let deltas = plans.iter().flatten().flat_map(|plan| &plan.deltas);
        let hashes = deltas.map(|delta| &*delta.blake3);
        let hashes: HashSet<_> =
            wanted.files.iter().map(|file| &*file.blake3).chain(hashes).collect();
        self.folder.remove_other_partials(&hashes)?;
        let total_bytes = wanted.bytes();
        let bandwidth = self.options.bandwidth.as_ref();
        let range_limits = RangeLimits { bandwidth, pace: self.pace };
        let (mut done, mut result) = (0, FetchResult::default());
        for ((file, reused), plan) in wanted.files.iter().zip(reused).zip(&plans) {
            let mut is_missing = reused.is_none();
            let from = (self.destination, self.folder);
            if let Some(plan) = plan {
                let limits = (options, range_limits);
                match plan.run(file, from, limits, self.delta_failures).await? {
                    Built::Complete(bytes) => {
                        is_missing = false;
                        result.bytes += bytes;
                        result.built_files += 1;
                    }
                    Built::Failed(reason, bytes) => {
                        result.bytes += bytes;
                        result.delta_failures.push(format!("{}: {reason}", file.name));
                    }
                }
            }
            if is_missing {
                let (destination, folder) = from;
                let fetch = Fetch { destination, folder, file };
                let report = |bytes| progress(Fetched { bytes: done + bytes, total_bytes });
                result.bytes += fetch.run(range_limits, report).await?;
            }
            done += file.bytes;
            progress(Fetched { bytes: done, total_bytes });
        }
        Ok(result)
    }

    /// Returns, for each file, how it is built from deltas, if it is.
    fn plans<'m>(
        &self,
        deltas: &Deltas<'m>,
        wanted: &Generation,
        reused: &[Option<PathBuf>],
    ) -> Vec<Option<Plan<'m>>> {
        let files = wanted.files.iter().zip(reused);
        let plans = files.map(|(file, reused)| {
            let is_missing = reused.is_none();
            let place = (self.folder, self.last.filter(|_| is_missing)?);
            deltas.plan(file, place, self.delta_failures)
        });
        plans.collect()
    }

    /// Moves and links the files of a generation to its folder.
    fn assemble(&self, wanted: &Generation, reused: &[Option<PathBuf>]) -> Result<()> {
        let mut new = self.folder.new_generation(wanted)?;
        for (file, reused) in wanted.files.iter().zip(reused) {
            match reused {
                Some(local) => new.link(local, file)?,
                None => new.take(&self.folder.partial(file), file)?,
            }
        }
        // The hashes hold, so this finds snapshots of another version, and files that are none.
        let opened =
            span!("verify", "internal").in_scope(|| Snapshot::open(new.path(wanted.name())));
        if let Err(error) = opened {
            // The next check needs not fetch them again.
            new.give_back(|hash| self.folder.partial_of(hash));
            return Err(error.into());
        }
        new.publish()
    }
}
