//! A follower of one destination.

use super::deltas::Failures;
use super::files::GenerationFetch;
use super::folder::Folder;
use super::options::FollowOptions;
use super::state::State;
use super::swapped::{FetchResult, Fetched, Swapped};
use crate::destination::{Destination, ObjectVersion};
use crate::error::{Error, Result};
use crate::manifest::{Generation, Manifest};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Keeps a folder at the current generation of a destination. A folder has at most one follower at
/// a time.
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
    /// The generation that is complete in the folder and not swapped in yet.
    prepared: Option<Prepared>,
    /// The state before that of the prepared generation was stored.
    replaced_state: Option<State>,
    /// The deltas that cannot be used, so that none is tried twice.
    delta_failures: Failures,
}

/// A generation that is complete in the folder.
#[derive(Debug)]
struct Prepared {
    manifest: Manifest,
    version: ObjectVersion,
    fetched: FetchResult,
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
        Ok(Self {
            destination,
            folder,
            options,
            state,
            is_in_place,
            version: None,
            prepared: None,
            replaced_state: None,
            delta_failures: Failures::default(),
        })
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
        self.prepare(progress).await?;
        self.store_prepared()?;
        self.swap()
    }

    /// Checks the destination once. If it has another current generation, brings its files into the
    /// folder, and keeps it for [`swap`](Self::swap).
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) async fn prepare(&mut self, progress: impl Fn(Fetched)) -> Result<()> {
        let prepared = self.try_prepare(progress).await;
        if prepared.as_ref().is_err_and(Error::is_full_disk) {
            // Other programs may need the space, and no file can be completed while there is none.
            self.folder.remove_incomplete();
        }
        prepared
    }

    async fn try_prepare(&mut self, progress: impl Fn(Fetched)) -> Result<()> {
        self.look_at_folder()?;
        let prepared = self.prepared.as_ref().map(|prepared| &prepared.version);
        let known = prepared.or(self.version.as_ref().filter(|_| self.is_in_place));
        let trusted = &self.options.trusted_keys;
        let read = self.destination.newer_manifest(known, trusted).await?;
        let Some(read) = read else { return Ok(()) };
        let (manifest, version) = (read.envelope.manifest, read.version);
        self.refuse_older(&manifest)?;
        let wanted = manifest.current();
        if let Some(State { serial, generation }) = &self.state
            && self.is_in_place
            && generation.is(wanted)
        {
            if *serial != manifest.serial {
                self.write_state(&manifest)?;
            }
            let unneeded = self.prepared.take();
            self.version = Some(version);
            if let Some(unneeded) = unneeded {
                self.remove(unneeded.manifest.current());
            }
            return Ok(());
        }
        self.folder.check_link(wanted.name())?;
        let fetched = match self.prepared.take() {
            Some(prepared) if prepared.manifest.current().is(wanted) => prepared.fetched,
            replaced => {
                if let Some(replaced) = replaced {
                    self.remove(replaced.manifest.current());
                }
                if self.folder.has(wanted) {
                    FetchResult::default()
                } else {
                    self.fetch(&manifest, progress).await?
                }
            }
        };
        self.prepared = Some(Prepared { manifest, version, fetched });
        Ok(())
    }

    async fn fetch(
        &mut self,
        manifest: &Manifest,
        progress: impl Fn(Fetched),
    ) -> Result<FetchResult> {
        let fetch = GenerationFetch {
            destination: &self.destination,
            folder: &self.folder,
            options: &self.options,
            last: self.state.as_ref().map(|state| &state.generation),
            delta_failures: &mut self.delta_failures,
        };
        fetch.run(manifest, progress).await
    }

    /// Removes a generation that was complete and not swapped in.
    fn remove(&self, generation: &Generation) {
        if self.in_place().is_none_or(|in_place| !in_place.is(generation)) {
            self.folder.remove_generation(generation);
        }
    }

    /// Returns whether a generation is complete in the folder and not swapped in yet.
    pub(super) fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// Returns the generation that the folder has after [`swap`](Self::swap).
    pub(super) fn next_generation(&self) -> Option<&Generation> {
        let prepared = self.prepared.as_ref().map(|prepared| prepared.manifest.current());
        prepared.or(self.in_place())
    }

    /// Stores in the state that the prepared generation is that of the folder: a follower that is
    /// killed before it has replaced the link replaces it when it starts.
    ///
    /// # Errors
    /// Returns [`Error::Io`].
    pub(super) fn store_prepared(&mut self) -> Result<()> {
        let Some(prepared) = self.prepared.take() else { return Ok(()) };
        let replaced = self.state.clone();
        let written = self.write_state(&prepared.manifest);
        if written.is_ok() {
            self.replaced_state = replaced;
        }
        self.prepared = Some(prepared);
        written
    }

    /// Restores the state before [`store_prepared`](Self::store_prepared), as far as that is
    /// possible: another folder of the group cannot be swapped.
    pub(super) fn restore_state(&mut self) {
        if self.prepared.is_some() {
            self.state = self.replaced_state.take();
            match &self.state {
                Some(state) => {
                    let _ = self.folder.write_state(state);
                }
                None => self.folder.remove_state(),
            }
        }
    }

    /// Replaces the link by one to the generation that is prepared and stored. Returns
    /// `None` if there is none.
    ///
    /// # Errors
    /// Returns [`Error::Io`], and [`Error::Contents`] if a file of another program has the path of
    /// the link.
    pub(super) fn swap(&mut self) -> Result<Option<Swapped>> {
        let Some(prepared) = &self.prepared else { return Ok(None) };
        let wanted = prepared.manifest.current();
        self.is_in_place = false;
        self.folder.point_to(wanted)?;
        self.is_in_place = true;
        self.folder.remove_other_links(wanted.name());
        self.folder.prune(wanted, self.options.previous);
        let swapped = Swapped {
            generation: wanted.id,
            created: wanted.created,
            path: self.folder.link(wanted.name()),
            fetched_bytes: prepared.fetched.bytes,
            built_files: prepared.fetched.built_files,
            delta_failures: prepared.fetched.delta_failures.clone(),
        };
        self.version = self.prepared.take().map(|prepared| prepared.version);
        Ok(Some(swapped))
    }

    /// Checks what other programs have done to the folder since the last check: they can have
    /// removed files or the link, or replaced the whole folder.
    fn look_at_folder(&mut self) -> Result<()> {
        if !self.folder.is_locked() {
            self.is_in_place = false;
            self.folder = self.folder.open_again()?;
            self.state = self.folder.state()?;
            self.prepared = None;
        }
        let is_complete =
            |prepared: &mut Prepared| self.folder.is_complete(prepared.manifest.current());
        let _ = self.prepared.take_if(|prepared| !is_complete(prepared));
        // A link that was removed is restored at once, also while a group waits.
        let is_linked = |generation: &Generation| {
            self.folder.is_linked_to(generation) || self.folder.point_to(generation).is_ok()
        };
        let is_intact = |State { generation, .. }: &State| {
            self.folder.is_complete(generation) && is_linked(generation)
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

    /// Writes the state for the current generation of a manifest.
    fn write_state(&mut self, manifest: &Manifest) -> Result<()> {
        let state = State { serial: manifest.serial, generation: manifest.current().clone() };
        self.folder.write_state(&state)?;
        self.state = Some(state);
        Ok(())
    }
}
