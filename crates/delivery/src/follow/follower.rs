//! A follower of one destination.

use super::bandwidth::Pace;
use super::deltas::Failures;
use super::files::GenerationFetch;
use super::folder::Folder;
use super::folder_name::folder_name;
use super::options::FollowOptions;
use super::state::{Next, State};
use super::swapped::{FetchResult, Fetched, Swapped};
use crate::destination::{Destination, ObjectVersion};
use crate::error::{Error, Result};
use crate::manifest::{Generation, Manifest};
use nuthatch_trace_context::{Instrument, note_error, span};
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
    /// The swap in which an earlier follower of the folder was killed.
    interrupted: Option<Interrupted>,
    /// The deltas that cannot be used, so that none is tried twice.
    delta_failures: Failures,
    /// The length of ranges that suits the source.
    pace: Pace,
    /// Number of checks.
    checks: u32,
}

/// One of so many checks reads the manifest whatever its version is: some web servers make versions
/// of the length and the time in seconds, and two manifests of one second can have the same.
const CHECKS_PER_READ: u32 = 16;

/// A generation that is complete in the folder.
#[derive(Debug)]
struct Prepared {
    manifest: Manifest,
    version: ObjectVersion,
    fetched: FetchResult,
}

/// A swap in which a follower was killed.
#[derive(Debug)]
enum Interrupted {
    /// The link was replaced, and the state was not.
    Replaced,
    /// The link was not replaced.
    Pending(Next),
}

impl Follower {
    /// Prepares a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// Returns [`Error::InUse`] if another follower uses the folder, and [`Error::Io`] if it cannot
    /// be read or written.
    pub fn open(destination: Destination, folder: &Path, options: FollowOptions) -> Result<Self> {
        let folder = Folder::open(folder)?;
        let (state, interrupted) = load(&folder, options.previous)?;
        let mut is_in_place = false;
        if let Some(State { generation, .. }) = &state {
            // What is missing is repaired by the next check, which reports what prevents it.
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
            interrupted,
            delta_failures: Failures::default(),
            pace: Pace::default(),
            checks: 0,
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
        self.begin_swap()?;
        if let Err(error) = self.replace_link() {
            self.undo_swap();
            return Err(error);
        }
        self.finish_swap()
    }

    /// Checks the destination once. If it has another current generation, brings its files into the
    /// folder, and keeps it for [`swap`](Self::swap).
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) async fn prepare(&mut self, progress: impl Fn(Fetched)) -> Result<()> {
        let span = span!("prepare", "internal", url.full = self.source());
        let prepared = self.try_prepare(progress).instrument(span.clone()).await;
        note_error(&span, &prepared);
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
        let known = known.filter(|_| !self.checks.is_multiple_of(CHECKS_PER_READ));
        self.checks = self.checks.wrapping_add(1);
        let trusted = &self.options.trusted_keys;
        let read = self.destination.newer_manifest(known, trusted);
        let read = read.instrument(span!("check", "client")).await?;
        let Some(read) = read else { return Ok(()) };
        let (manifest, version) = (read.envelope.manifest, read.version);
        self.refuse_older(&manifest)?;
        let wanted = manifest.current();
        if let Some(State { serial, generation, .. }) = &self.state
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
            self.prune();
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
        // Generations that were prepared and never swapped in, such as those of a killed follower.
        self.prune();
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
            pace: &self.pace,
        };
        fetch.run(manifest, progress).instrument(span!("fetch", "client")).await
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

    /// Stores which generation the folder gets, so that a swap of several folders in which the
    /// follower is killed can be completed.
    ///
    /// # Errors
    /// Returns [`Error::Io`], and [`Error::Contents`] if a file of another program has the path of
    /// the link.
    pub(super) fn begin_swap(&mut self) -> Result<()> {
        let next = match &self.prepared {
            Some(Prepared { manifest, .. }) => {
                self.folder.check_link(manifest.current().name())?;
                Some(Next { serial: manifest.serial, generation: manifest.current().clone() })
            }
            None => None,
        };
        match &self.state {
            // What an interrupted swap has left in the state must not be completed later.
            Some(state) if state.next != next || self.interrupted.is_some() => {
                let state = State { next, ..state.clone() };
                self.folder.write_state(&state)?;
                self.state = Some(state);
                self.interrupted = None;
                Ok(())
            }
            None if next.is_some() => self.folder.check_state_writable(),
            _ => Ok(()),
        }
    }

    /// Replaces the link by one to the prepared generation, if there is one.
    ///
    /// # Errors
    /// As [`begin_swap`](Self::begin_swap).
    pub(super) fn replace_link(&mut self) -> Result<()> {
        let prepared = self.prepared.as_ref();
        prepared.map_or(Ok(()), |prepared| self.folder.point_to(prepared.manifest.current()))
    }

    /// Restores the link of the generation in the folder, as far as that is possible: another
    /// folder of the group cannot be swapped.
    pub(super) fn undo_swap(&mut self) {
        let Some(prepared) = &self.prepared else { return };
        let wanted = prepared.manifest.current();
        match &self.state {
            Some(state) if self.folder.is_complete(&state.generation) => {
                let _ = self.folder.point_to(&state.generation);
                if state.generation.name() != wanted.name() {
                    self.folder.remove_link_to(wanted);
                }
            }
            _ => self.folder.remove_link_to(wanted),
        }
    }

    /// Stores that the prepared generation, to which the link points, is that of the folder, and
    /// removes generations that are no longer kept. Returns `None` if none is prepared.
    ///
    /// # Errors
    /// Returns [`Error::Io`].
    pub(super) fn finish_swap(&mut self) -> Result<Option<Swapped>> {
        let Some(prepared) = self.prepared.take() else { return Ok(None) };
        if let Err(error) = self.write_state(&prepared.manifest) {
            self.is_in_place = false;
            self.prepared = Some(prepared);
            return Err(error);
        }
        self.is_in_place = true;
        self.interrupted = None;
        let wanted = prepared.manifest.current();
        self.folder.remove_other_links(wanted.name());
        self.prune();
        self.version = Some(prepared.version);
        Ok(Some(Swapped {
            generation: wanted.id,
            created: wanted.created,
            path: self.folder.link(wanted.name()),
            fetched_bytes: prepared.fetched.bytes,
            built_files: prepared.fetched.built_files,
            delta_failures: prepared.fetched.delta_failures,
        }))
    }

    /// Returns whether an earlier follower was killed after it had replaced the link.
    pub(super) fn has_replaced_link(&self) -> bool {
        matches!(self.interrupted, Some(Interrupted::Replaced))
    }

    /// Completes the swap in which an earlier follower was killed, since the link of another folder
    /// of the group was replaced. Returns whether the folder has the next generation.
    pub(super) fn complete_swap(&mut self) -> bool {
        let Some(Interrupted::Pending(next)) = self.interrupted.take() else { return true };
        let Next { generation, .. } = &next;
        if !self.folder.is_complete(generation) || self.folder.point_to(generation).is_err() {
            self.interrupted = Some(Interrupted::Pending(next));
            return false;
        }
        self.folder.remove_other_links(generation.name());
        self.state = Some(State::advance(self.state.as_ref(), next, self.options.previous));
        self.is_in_place = true;
        self.interrupted = Some(Interrupted::Replaced);
        true
    }

    /// Stores the state after an interrupted swap, when all folders of the group have completed it.
    pub(super) fn settle(&mut self) {
        if let Some(state) = &self.state
            && self.folder.write_state(state).is_ok()
        {
            self.interrupted = None;
        }
    }

    /// Removes the generations that the folder neither has nor gets nor keeps.
    fn prune(&self) {
        let of_state = self.state.iter().flat_map(|state| {
            let previous = state.previous.iter().take(self.options.previous).cloned();
            previous.chain([folder_name(&state.generation)])
        });
        let prepared = self.prepared.iter().map(|one| folder_name(one.manifest.current()));
        let keep: Vec<_> = of_state.chain(prepared).collect();
        let keep: Vec<_> = keep.iter().map(String::as_str).collect();
        self.folder.prune(&keep);
    }

    /// Checks what other programs have done to the folder since the last check: they can have
    /// removed files or the link, or replaced the whole folder.
    fn look_at_folder(&mut self) -> Result<()> {
        if !self.folder.is_locked() {
            self.is_in_place = false;
            self.folder = self.folder.open_again()?;
            (self.state, self.interrupted) = load(&self.folder, self.options.previous)?;
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
        let next = Next { serial: manifest.serial, generation: manifest.current().clone() };
        let state = State::advance(self.state.as_ref(), next, self.options.previous);
        self.folder.write_state(&state)?;
        self.state = Some(state);
        Ok(())
    }
}

/// Reads the state of a folder, and the swap in which a follower was killed.
fn load(folder: &Folder, previous: usize) -> Result<(Option<State>, Option<Interrupted>)> {
    let Some(mut state) = folder.state()? else { return Ok((None, None)) };
    let Some(next) = state.next.take() else { return Ok((Some(state), None)) };
    if folder.is_linked_to(&next.generation) && folder.is_complete(&next.generation) {
        let state = State::advance(Some(&state), next, previous);
        return Ok((Some(state), Some(Interrupted::Replaced)));
    }
    Ok((Some(state), Some(Interrupted::Pending(next))))
}
