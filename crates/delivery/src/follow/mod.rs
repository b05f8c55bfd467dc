//! Following: keeps a folder at the current generation of a destination.

mod fetch;
mod folder;
mod folder_name;
mod state;

use crate::destination::{Destination, ObjectVersion};
use crate::error::{Error, Result};
use crate::manifest::{Generation, Manifest};
use crate::signature::TrustedKey;
use fetch::{Fetch, Pace};
use folder::Folder;
use nuthatch_snapshot::Snapshot;
use state::State;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub use fetch::Fetched;

/// Options for following.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The keys of which one must have signed the manifest. With none, the default, signatures are
    /// not checked.
    pub trusted_keys: Vec<TrustedKey>,
    /// Maximum number of bytes that are fetched in a second. `None`, the default, is for no limit.
    pub bytes_per_second: Option<u64>,
    /// Number of generations before the current one that stay in the folder; 1 by default.
    pub previous: usize,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { trusted_keys: Vec::new(), bytes_per_second: None, previous: 1 }
    }
}

/// A folder that follows a destination. One follower at a time uses a folder.
#[derive(Debug)]
pub struct Follower {
    destination: Destination,
    folder: Folder,
    options: FollowOptions,
    /// The generation in the folder, if there is one.
    state: Option<State>,
    /// The version of the manifest that the folder agrees with.
    version: Option<ObjectVersion>,
}

/// A generation that was swapped in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swapped {
    /// The number of the generation.
    pub generation: u64,
    /// The time of its publication.
    pub created: SystemTime,
    /// The path that programs open.
    pub path: PathBuf,
    /// Bytes that were fetched. Files of the generation before are not fetched again.
    pub fetched_bytes: u64,
}

impl Follower {
    /// Prepares a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// Returns [`Error::InUse`] if another follower uses the folder, and [`Error::Io`] if it cannot
    /// be read or written.
    pub fn open(destination: Destination, folder: &Path, options: FollowOptions) -> Result<Self> {
        let folder = Folder::open(folder)?;
        let state = folder.state()?;
        Ok(Self { destination, folder, options, state, version: None })
    }

    /// Returns the address of the destination, without secrets.
    pub fn source(&self) -> &str {
        self.destination.address()
    }

    /// Returns the number of the generation in the folder.
    pub fn generation(&self) -> Option<u64> {
        self.state.as_ref().map(|state| state.generation)
    }

    /// Returns the time at which the generation in the folder was published.
    pub fn created(&self) -> Option<SystemTime> {
        self.state.as_ref().map(|state| state.created)
    }

    /// Returns the path that programs open, if there is a generation in the folder.
    pub fn path(&self) -> Option<PathBuf> {
        self.state.as_ref().map(|state| self.folder.link(&state.name))
    }

    /// Checks the destination once. If it has another current generation, fetches its files,
    /// verifies them, and swaps it in. Returns `None` if the folder has the current generation.
    ///
    /// # Errors
    /// Returns [`Error::NothingPublished`] if there is no manifest, [`Error::OlderManifest`] if the
    /// manifest is older than one that was seen before, [`Error::Contents`] if a file has other
    /// bytes than the manifest says, and [`Error::Manifest`], [`Error::Signature`],
    /// [`Error::Store`], [`Error::Snapshot`] or [`Error::Io`]. After any of these, the folder still
    /// has the generation that it had, and the next check continues what was fetched.
    pub async fn check(&mut self, progress: impl Fn(Fetched)) -> Result<Option<Swapped>> {
        let trusted = &self.options.trusted_keys;
        let read = self.destination.newer_manifest(self.version.as_ref(), trusted).await?;
        let Some(read) = read else { return Ok(None) };
        let manifest = read.envelope.manifest;
        self.refuse_older(&manifest)?;
        let wanted = manifest.current();
        let swapped = if self.state.as_ref().is_some_and(|state| state.is_of(wanted)) {
            self.keep(&manifest, wanted)?
        } else {
            Some(self.swap(&manifest, wanted, progress).await?)
        };
        self.version = Some(read.version);
        Ok(swapped)
    }

    /// Stores the serial number of the manifest. Replaces the link if the swap failed to.
    fn keep(&mut self, manifest: &Manifest, wanted: &Generation) -> Result<Option<Swapped>> {
        if self.state.as_ref().is_none_or(|state| state.serial != manifest.serial) {
            self.remember(manifest, wanted)?;
        }
        let is_new = self.folder.point_to(wanted)?;
        Ok(is_new.then(|| self.swapped(wanted, 0)))
    }

    /// Fails if the manifest is older than one that was seen. It may come from a stale copy of the
    /// store, or from an attacker who can replay one that was signed.
    fn refuse_older(&self, manifest: &Manifest) -> Result<()> {
        match &self.state {
            Some(state) if manifest.serial < state.serial => Err(Error::OlderManifest {
                manifest: self.destination.manifest_address(),
                expected: state.serial,
                found: manifest.serial,
            }),
            _ => Ok(()),
        }
    }

    async fn swap(
        &mut self,
        manifest: &Manifest,
        wanted: &Generation,
        progress: impl Fn(Fetched),
    ) -> Result<Swapped> {
        self.folder.remove_other_partials(wanted)?;
        let present = self.state.as_ref().map(|state| (state, self.folder.generation(state)));
        let total_bytes = wanted.bytes();
        let (mut done, mut fetched_bytes) = (0, 0);
        let mut pace = Pace::new(self.options.bytes_per_second);
        let new = self.folder.new_generation(wanted)?;
        for file in &wanted.files {
            let local = present.as_ref().and_then(|(state, path)| state.find(file, path));
            if local.is_none_or(|local| !new.link(&local, &file.name)) {
                let fetch = Fetch { destination: &self.destination, folder: &self.folder, file };
                let report = |bytes| progress(Fetched { bytes: done + bytes, total_bytes });
                fetched_bytes += fetch.run(&mut pace, report).await?;
                new.take(&self.folder.partial(file), &file.name)?;
            }
            done += file.bytes;
            progress(Fetched { bytes: done, total_bytes });
        }
        // The hashes hold, so this finds snapshots of another version, and files that are none.
        Snapshot::open(new.path(&wanted.files[0].name))?;
        new.publish()?;
        let old = self.state.take();
        self.remember(manifest, wanted)?;
        self.folder.point_to(wanted)?;
        if let Some(old) = old.filter(|old| old.name != wanted.name()) {
            self.folder.remove_link(&old.name)?;
        }
        self.folder.prune(wanted, self.options.previous);
        Ok(self.swapped(wanted, fetched_bytes))
    }

    fn swapped(&self, generation: &Generation, fetched_bytes: u64) -> Swapped {
        Swapped {
            generation: generation.id,
            created: generation.created,
            path: self.folder.link(generation.name()),
            fetched_bytes,
        }
    }

    /// Writes the state, before the link is replaced: a follower that is killed in between replaces
    /// the link when it starts.
    fn remember(&mut self, manifest: &Manifest, generation: &Generation) -> Result<()> {
        let state = State::of(manifest.serial, generation);
        self.folder.write_state(&state)?;
        self.state = Some(state);
        Ok(())
    }
}

/// Returns a delay of the interval, shortened or lengthened at random by up to a tenth, so that
/// many followers do not ask at the same time. It doubles with each failure in a row, up to 16
/// times the interval and at least a second.
pub fn delay_before_check(interval: Duration, failures: u32, random: f64) -> Duration {
    let factor = f64::from(1_u32 << failures.min(4)) * (0.9 + 0.2 * random.clamp(0.0, 1.0));
    interval.max(Duration::from_millis(if failures > 0 { 1000 } else { 0 })).mul_f64(factor)
}
