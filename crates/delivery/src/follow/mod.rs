//! Following: keeps a folder at the current generation of a destination.

mod deltas;
mod fetch;
mod folder;
mod folder_name;
mod state;

use crate::destination::{Destination, ObjectVersion};
use crate::error::{Error, Result};
use crate::manifest::{DataFile, Generation, Manifest};
use crate::signature::TrustedKey;
use deltas::{Built, Deltas, Failures, Plan};
use fetch::{Fetch, RateLimiter};
use folder::Folder;
use nuthatch_snapshot::Snapshot;
use state::State;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub use deltas::DeltaOptions;
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
    /// How files are built from deltas.
    pub deltas: DeltaOptions,
}

impl Default for FollowOptions {
    fn default() -> Self {
        let deltas = DeltaOptions::default();
        Self { trusted_keys: Vec::new(), bytes_per_second: None, previous: 1, deltas }
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
    /// Whether the files of that generation are there, and the link points to it.
    is_in_place: bool,
    /// The version of the manifest that the folder agrees with.
    version: Option<ObjectVersion>,
    /// The deltas that have failed, so that they are not tried again.
    delta_failures: Failures,
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
    /// Bytes that were fetched, deltas included. Files of the generation before are not fetched
    /// again.
    pub fetched_bytes: u64,
    /// Number of files that were built from deltas.
    pub built_files: u64,
    /// Why files were fetched although there was a delta.
    pub delta_failures: Vec<String>,
}

/// What a fetch has done.
#[derive(Default)]
struct FetchResult {
    bytes: u64,
    built_files: u64,
    delta_failures: Vec<String>,
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
        let mut is_in_place = false;
        if let Some(State { generation, .. }) = &state {
            // A follower that was killed may have left the old link. What else is missing is
            // repaired by the next check, which reports what prevents it.
            is_in_place = folder.is_complete(generation) && folder.point_to(generation).is_ok();
            if is_in_place {
                folder.remove_other_links(generation.name());
            }
        }
        let delta_failures = Failures::default();
        Ok(Self { destination, folder, options, state, is_in_place, version: None, delta_failures })
    }

    /// Returns the address of the destination, without secrets.
    pub fn source(&self) -> &str {
        self.destination.address()
    }

    /// Returns the number of the generation in the folder.
    pub fn generation(&self) -> Option<u64> {
        self.in_place().map(|generation| generation.id)
    }

    /// Returns the time at which the generation in the folder was published.
    pub fn created(&self) -> Option<SystemTime> {
        self.in_place().map(|generation| generation.created)
    }

    /// Returns the path that programs open, if there is a generation in the folder.
    pub fn path(&self) -> Option<PathBuf> {
        self.in_place().map(|generation| self.folder.link(generation.name()))
    }

    fn in_place(&self) -> Option<&Generation> {
        self.state.as_ref().filter(|_| self.is_in_place).map(|state| &state.generation)
    }

    /// Checks the destination once. If it has another current generation, fetches its files,
    /// verifies them, and swaps it in. Returns `None` if the folder has the current generation.
    ///
    /// # Errors
    /// Returns [`Error::NothingPublished`] if there is no manifest, [`Error::OlderManifest`] if the
    /// manifest is older than that of the generation in the folder, [`Error::Contents`] if a file
    /// has other bytes than the manifest says, and [`Error::Manifest`], [`Error::Signature`],
    /// [`Error::Store`], [`Error::Snapshot`] or [`Error::Io`]. After any of these, the folder still
    /// has the generation that it had, and the next check continues what was fetched.
    pub async fn check(&mut self, progress: impl Fn(Fetched)) -> Result<Option<Swapped>> {
        let checked = self.try_check(progress).await;
        if checked.as_ref().is_err_and(Error::is_full_disk) {
            // Other programs may need the space, and no file can be completed while there is none.
            self.folder.remove_incomplete();
        }
        checked
    }

    async fn try_check(&mut self, progress: impl Fn(Fetched)) -> Result<Option<Swapped>> {
        self.look_at_folder()?;
        let trusted = &self.options.trusted_keys;
        let known = self.version.as_ref().filter(|_| self.is_in_place);
        let read = self.destination.newer_manifest(known, trusted).await?;
        let Some(read) = read else { return Ok(None) };
        let manifest = read.envelope.manifest;
        self.refuse_older(&manifest)?;
        let wanted = manifest.current();
        let swapped = match &self.state {
            Some(state) if self.is_in_place && state.generation.is(wanted) => {
                if state.serial != manifest.serial {
                    self.write_state(&manifest, wanted)?;
                }
                None
            }
            _ => Some(self.swap(&manifest, wanted, progress).await?),
        };
        self.version = Some(read.version);
        Ok(swapped)
    }

    /// Checks what other programs have done to the folder since the last check: they can have
    /// removed files or the link, or replaced the whole folder.
    fn look_at_folder(&mut self) -> Result<()> {
        if !self.folder.is_locked() {
            self.is_in_place = false;
            self.folder = self.folder.open_again()?;
            self.state = self.folder.state()?;
        }
        let is_intact = |State { generation, .. }: &State| {
            self.folder.is_complete(generation) && self.folder.is_linked_to(generation)
        };
        self.is_in_place = self.is_in_place && self.state.as_ref().is_some_and(is_intact);
        Ok(())
    }

    /// Fails if the manifest is older than that of the generation in the folder. It may come from a
    /// stale copy of the store, or from an attacker who can replay one that was signed.
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
        self.folder.check_link(wanted.name())?;
        let mut fetched = FetchResult::default();
        if !self.folder.has(wanted) {
            let reused: Vec<_> = wanted.files.iter().map(|file| self.local(file)).collect();
            fetched = self.fetch(manifest, wanted, &reused, progress).await?;
            self.assemble(wanted, &reused)?;
        }
        self.write_state(manifest, wanted)?;
        self.is_in_place = false;
        self.folder.point_to(wanted)?;
        self.is_in_place = true;
        self.folder.remove_other_links(wanted.name());
        self.folder.prune(wanted, self.options.previous);
        Ok(self.swapped(wanted, fetched))
    }

    /// Returns the path of a file of the last generation with the same contents.
    fn local(&self, file: &DataFile) -> Option<PathBuf> {
        self.folder.find(file, &self.state.as_ref()?.generation)
    }

    /// Brings the files that are not in the folder into their partial files: builds them from
    /// deltas, or fetches them.
    async fn fetch(
        &mut self,
        manifest: &Manifest,
        wanted: &Generation,
        reused: &[Option<PathBuf>],
        progress: impl Fn(Fetched),
    ) -> Result<FetchResult> {
        let options = self.options.deltas;
        let plans = self.plans(&Deltas::new(manifest, options), wanted, reused);
        let deltas = plans.iter().flatten().flat_map(|plan| &plan.deltas);
        let hashes = deltas.map(|delta| &*delta.blake3);
        let hashes: HashSet<_> =
            wanted.files.iter().map(|file| &*file.blake3).chain(hashes).collect();
        self.folder.remove_other_partials(&hashes)?;
        let total_bytes = wanted.bytes();
        let mut limiter = RateLimiter::new(self.options.bytes_per_second);
        let (mut done, mut result) = (0, FetchResult::default());
        for ((file, reused), plan) in wanted.files.iter().zip(reused).zip(&plans) {
            let mut is_missing = reused.is_none();
            let from = (&self.destination, &self.folder);
            if let Some(plan) = plan {
                let limits = (options, &mut limiter);
                match plan.run(file, from, limits, &mut self.delta_failures).await? {
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
                let fetch = Fetch { destination: &self.destination, folder: &self.folder, file };
                let report = |bytes| progress(Fetched { bytes: done + bytes, total_bytes });
                result.bytes += fetch.run(&mut limiter, report).await?;
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
        let here = self.in_place();
        let files = wanted.files.iter().zip(reused);
        let plans = files.map(|(file, reused)| {
            let is_missing = reused.is_none();
            let place = (&self.folder, here.filter(|_| is_missing)?);
            deltas.plan(file, place, &self.delta_failures)
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
        if let Err(error) = Snapshot::open(new.path(wanted.name())) {
            // The next check needs not fetch them again.
            new.give_back(|hash| self.folder.partial_of(hash));
            return Err(error.into());
        }
        new.publish()
    }

    fn swapped(&self, generation: &Generation, fetched: FetchResult) -> Swapped {
        Swapped {
            generation: generation.id,
            created: generation.created,
            path: self.folder.link(generation.name()),
            fetched_bytes: fetched.bytes,
            built_files: fetched.built_files,
            delta_failures: fetched.delta_failures,
        }
    }

    /// Writes the state, before the link is replaced: a follower that is killed in between replaces
    /// the link when it starts.
    fn write_state(&mut self, manifest: &Manifest, generation: &Generation) -> Result<()> {
        let state = State { serial: manifest.serial, generation: generation.clone() };
        self.folder.write_state(&state)?;
        self.state = Some(state);
        Ok(())
    }
}

/// Returns the delay before the next check: the interval, shortened or lengthened by up to a tenth,
/// so that many followers do not ask at the same time. After each further failure in a row it
/// doubles, up to 16 times the interval; an interval below a second then counts as one. `random` is
/// a random number from 0 to 1.
pub fn delay_before_check(interval: Duration, failures: u32, random: f64) -> Duration {
    let base = if failures > 0 { interval.max(Duration::from_secs(1)) } else { interval };
    let doublings = failures.saturating_sub(1).min(4);
    base.mul_f64(f64::from(1_u32 << doublings) * (0.9 + 0.2 * random.clamp(0.0, 1.0)))
}
