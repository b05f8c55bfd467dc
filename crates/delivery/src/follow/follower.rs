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
use std::mem;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Keeps a folder at the current generation of a destination. A folder has at most one follower at
/// a time.
#[derive(Debug)]
pub struct Follower {
    destination: Destination,
    folder: Folder,
    options: FollowOptions,
    /// The state of the folder, if a swap was ever begun.
    state: Option<State>,
    /// Whether the files of that generation are there, and the link points to it.
    is_in_place: bool,
    /// The version of the manifest that the folder agrees with.
    version: Option<ObjectVersion>,
    /// The generation that is complete in the folder and not swapped in yet.
    prepared: Option<Prepared>,
    /// The swap that the stored state does not say to be complete.
    interrupted: Option<Interrupted>,
    /// Whether the generation in the folder was swapped in by a follower that was killed before it
    /// returned that, or ended before its caller confirmed it.
    has_unreported_swap: bool,
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

/// A swap in which a follower was killed, or whose end could not be stored.
#[derive(Debug)]
enum Interrupted {
    /// The link was replaced, and the stored state was not. Has the state before the swap.
    Replaced(State),
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
        let (state, interrupted) = load(&folder, &options)?;
        let is_unconfirmed =
            options.confirms_swaps && state.as_ref().is_some_and(|state| state.is_unconfirmed);
        let mut is_in_place = false;
        if let Some(State { generation: Some(generation), .. }) = &state {
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
            has_unreported_swap: is_unconfirmed
                || matches!(interrupted, Some(Interrupted::Replaced(_))),
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
        self.stored().filter(|_| self.is_in_place)
    }

    /// Returns the generation of the state, whether or not it is complete in the folder.
    fn stored(&self) -> Option<&Generation> {
        self.state.as_ref()?.generation.as_ref()
    }

    /// Checks the destination once. If it has another current generation, fetches its files,
    /// verifies them, and swaps it in. Returns `None` if the folder has the current generation. A
    /// swap of an earlier follower that was killed before it returned it is returned here.
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
        let completed = self.take_completed();
        let swapped = self.finish_swap();
        if swapped.is_some() {
            self.remove_surplus();
        }
        Ok(swapped.or(completed))
    }

    /// Stores that the caller needs the swap to the generation in the folder no more. Has no effect
    /// if the follower does not store [unconfirmed swaps](FollowOptions::confirms_swaps).
    ///
    /// # Errors
    /// Returns [`Error::Io`] if this cannot be stored. The next follower can return the swap again.
    pub fn confirm_swap(&mut self) -> Result<()> {
        let Some(state) = self.state.as_mut().filter(|state| state.is_unconfirmed) else {
            return Ok(());
        };
        state.is_unconfirmed = false;
        let next = match &self.interrupted {
            // The next check stores it, with the end of the swap.
            Some(Interrupted::Replaced(_)) => return Ok(()),
            Some(Interrupted::Pending(next)) => Some(next.clone()),
            None => state.next.clone(),
        };
        let state = State { next, ..state.clone() };
        // Another program can have replaced the folder. The new one has its own state.
        if self.folder.is_locked() { self.folder.write_state(&state) } else { Ok(()) }
    }

    /// Returns the swap of an earlier follower that was killed before it returned it, or ended
    /// before its caller confirmed it. Returns it once.
    pub(super) fn take_completed(&mut self) -> Option<Swapped> {
        let is_unreported = mem::take(&mut self.has_unreported_swap);
        let generation = self.in_place().filter(|_| is_unreported)?;
        let path = self.folder.link(generation.name());
        Some(Swapped::new(generation, path, FetchResult::default()))
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
        if let Some(State { serial, generation: Some(generation), .. }) = &self.state
            && self.is_in_place
            && generation.is(wanted)
        {
            if *serial != manifest.serial {
                self.write_state(&manifest)?;
            }
            self.prepared = None;
            self.version = Some(version);
            self.prune();
            return Ok(());
        }
        self.folder.check_link(wanted.name())?;
        let fetched = match self.prepared.take() {
            Some(prepared) if prepared.manifest.current().is(wanted) => prepared.fetched,
            replaced => {
                if replaced.is_some() {
                    self.prune();
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
            last: self.state.as_ref().and_then(|state| state.generation.as_ref()),
            delta_failures: &mut self.delta_failures,
            pace: &self.pace,
        };
        fetch.run(manifest, progress).instrument(span!("fetch", "client")).await
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
        let known = self.state.as_ref().and_then(|state| state.next.as_ref());
        // What an interrupted swap has left in the state must not be completed later.
        if known != next.as_ref() || self.interrupted.is_some() {
            let state = State { next, ..self.state.clone().unwrap_or_default() };
            self.folder.write_state(&state)?;
            self.state = Some(state);
            self.interrupted = None;
        }
        Ok(())
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
        if let Some(prepared) = &self.prepared {
            self.folder.restore_link(self.stored(), prepared.manifest.current());
        }
    }

    /// Stores that the prepared generation, to which the link points, is that of the folder.
    /// Returns `None` if none is prepared.
    ///
    /// If this cannot be stored, the generation is nevertheless that of the folder, since programs
    /// have it. The next check stores it or fails, and so does a follower that starts later.
    pub(super) fn finish_swap(&mut self) -> Option<Swapped> {
        let Prepared { manifest, version, fetched } = self.prepared.take()?;
        let next = Next { serial: manifest.serial, generation: manifest.current().clone() };
        let before = self.state.take().unwrap_or_default();
        let state = swapped(&before, next, &self.options);
        let stored = self.folder.write_state(&state);
        self.interrupted = stored.is_err().then_some(Interrupted::Replaced(before));
        self.state = Some(state);
        self.is_in_place = true;
        self.has_unreported_swap = false;
        let wanted = manifest.current();
        self.version = Some(version);
        Some(Swapped::new(wanted, self.folder.link(wanted.name()), fetched))
    }

    /// Removes the links and the generations that the folder keeps no more after a swap.
    pub(super) fn remove_surplus(&self) {
        if let Some(generation) = self.stored() {
            self.folder.remove_other_links(generation.name());
        }
        self.prune();
    }

    /// Returns whether an earlier follower was killed after it had replaced the link.
    pub(super) fn has_replaced_link(&self) -> bool {
        matches!(self.interrupted, Some(Interrupted::Replaced(_)))
    }

    /// Completes the swap in which an earlier follower was killed, since the link of another folder
    /// of the group was replaced. Returns whether the folder has the next generation.
    pub(super) fn complete_swap(&mut self) -> bool {
        let Some(Interrupted::Pending(next)) = &self.interrupted else { return true };
        let (next, generation) = (next.clone(), &next.generation);
        if !self.folder.is_complete(generation) || self.folder.point_to(generation).is_err() {
            return false;
        }
        let before = self.state.take().unwrap_or_default();
        self.state = Some(swapped(&before, next, &self.options));
        self.interrupted = Some(Interrupted::Replaced(before));
        self.is_in_place = true;
        self.has_unreported_swap = true;
        true
    }

    /// Restores the generation before the interrupted swap, as far as that is possible: another
    /// folder of the group cannot complete it.
    pub(super) fn undo_interrupted_swap(&mut self) {
        let Some(Interrupted::Replaced(before)) = &self.interrupted else { return };
        let Some(State { serial, generation: Some(replaced_by), .. }) = &self.state else { return };
        if self.folder.restore_link(before.generation.as_ref(), replaced_by) {
            let next = Next { serial: *serial, generation: replaced_by.clone() };
            self.is_in_place = before.generation.is_some();
            self.has_unreported_swap = self.options.confirms_swaps && before.is_unconfirmed;
            self.state = Some(before.clone());
            self.interrupted = Some(Interrupted::Pending(next));
        }
    }

    /// Stores the state after an interrupted swap, when all folders of the group have completed it.
    pub(super) fn settle(&mut self) {
        if self.has_replaced_link()
            && let Some(state) = &self.state
        {
            state.generation.iter().for_each(|new| self.folder.remove_other_links(new.name()));
            if self.folder.write_state(state).is_ok() {
                self.interrupted = None;
            }
        }
    }

    /// Removes the generations that the folder neither has nor gets nor keeps.
    fn prune(&self) {
        let of_state = self.state.iter().flat_map(|state| {
            let previous = state.previous.iter().take(self.options.previous).cloned();
            previous.chain(state.generation.as_ref().map(folder_name))
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
            (self.state, self.interrupted) = load(&self.folder, &self.options)?;
            self.prepared = None;
        }
        let is_complete =
            |prepared: &mut Prepared| self.folder.is_complete(prepared.manifest.current());
        let _ = self.prepared.take_if(|prepared| !is_complete(prepared));
        // A link that was removed is restored at once, also while a group waits.
        let is_linked = |generation: &Generation| {
            self.folder.is_linked_to(generation) || self.folder.point_to(generation).is_ok()
        };
        let is_intact =
            |generation: &Generation| self.folder.is_complete(generation) && is_linked(generation);
        self.is_in_place = self.in_place().is_some_and(is_intact);
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

/// Returns the state after a swap.
fn swapped(before: &State, next: Next, options: &FollowOptions) -> State {
    let state = State::advance(Some(before), next, options.previous);
    State { is_unconfirmed: options.confirms_swaps, ..state }
}

/// Reads the state of a folder, and the swap in which a follower was killed.
fn load(folder: &Folder, options: &FollowOptions) -> Result<(Option<State>, Option<Interrupted>)> {
    let Some(mut state) = folder.state()? else { return Ok((None, None)) };
    let Some(next) = state.next.take() else { return Ok((Some(state), None)) };
    if folder.is_linked_to(&next.generation) && folder.is_complete(&next.generation) {
        let advanced = swapped(&state, next, options);
        return Ok((Some(advanced), Some(Interrupted::Replaced(state))));
    }
    Ok((Some(state), Some(Interrupted::Pending(next))))
}
