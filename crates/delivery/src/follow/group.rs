//! Folders that are swapped together.

use super::follower::Follower;
use super::swapped::{Fetched, Swapped};
use crate::error::Result;
use nuthatch_trace_context::{Instrument, span};
use std::fmt::Write;

/// Followers whose generations are swapped in together: none before all are complete.
///
/// ```
/// use nuthatch_delivery::{Destination, FollowOptions, Follower, Group};
/// # let directory = tempfile::tempdir()?;
/// # let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
/// let open = |name: &str| {
///     let destination = Destination::open(&path(&format!("shared/{name}")))?;
///     Follower::open(destination, path(name).as_ref(), FollowOptions::default())
/// };
/// let mut group = Group::new(vec![open("users")?, open("prices")?]).same_metadata("batch");
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let checked = group.check(|_, _| {}).await;
/// assert!(checked.folders[0].is_err(), "nothing was published yet");
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Group {
    followers: Vec<Follower>,
    /// The name of the metadata that must be the same.
    same: Option<String>,
}

/// The result of a check of a group.
#[derive(Debug)]
pub struct GroupChecked {
    /// For each folder, in their order: what was swapped in, or why its generation is not complete.
    pub folders: Vec<Result<Option<Swapped>>>,
    /// Why complete generations were not swapped in; `None` if none waits.
    pub waits_for: Option<String>,
}

impl Group {
    /// Creates a group. Its followers are checked in this order. If an earlier group of these
    /// folders was killed when some links were replaced, replaces the others, too. If one of them
    /// cannot be replaced, restores those that were.
    #[must_use]
    pub fn new(mut followers: Vec<Follower>) -> Self {
        if followers.iter().any(Follower::has_replaced_link) {
            if followers.iter_mut().all(Follower::complete_swap) {
                followers.iter_mut().for_each(Follower::settle);
            } else {
                followers.iter_mut().for_each(Follower::undo_interrupted_swap);
            }
        }
        Self { followers, same: None }
    }

    /// Returns, for each folder, the swap of an earlier group that was killed before it returned
    /// it, such as one that [`new`](Self::new) has completed, or that ended before its caller
    /// [confirmed](crate::FollowOptions::confirms_swaps) it. Returns each swap once.
    #[must_use]
    pub fn take_completed(&mut self) -> Vec<Option<Swapped>> {
        self.followers.iter_mut().map(Follower::take_completed).collect()
    }

    /// Stores that the caller needs the last swap of a folder no more. `folder` is its number, from
    /// 0. See [`Follower::confirm_swap`].
    ///
    /// # Errors
    /// Returns [`Error::Io`](crate::Error::Io) if this cannot be stored.
    ///
    /// # Panics
    /// Panics if the group has no folder of this number.
    pub fn confirm_swap(&mut self, folder: usize) -> Result<()> {
        self.followers[folder].confirm_swap()
    }

    /// Sets the name of a metadata value that the generations of all folders must have in common
    /// before they are swapped in, such as the number of the batch that has written them.
    #[must_use]
    pub fn same_metadata(mut self, name: &str) -> Self {
        self.same = Some(name.to_owned());
        self
    }

    /// Returns the followers.
    #[must_use]
    pub fn followers(&self) -> &[Follower] {
        &self.followers
    }

    /// Checks the destinations of all folders once, one after the other. When all new generations
    /// are complete, swaps them in: the links are replaced directly one after the other, so a
    /// program that opens several of them at that moment can still find an old one beside a new
    /// one. If one generation cannot be completed, no folder is swapped.
    ///
    /// `progress` gets the number of the folder, from 0.
    pub async fn check(&mut self, progress: impl Fn(usize, Fetched)) -> GroupChecked {
        let span = span!("follow", "internal", nuthatch.folders = self.followers.len());
        self.check_and_swap(progress).instrument(span).await
    }

    async fn check_and_swap(&mut self, progress: impl Fn(usize, Fetched)) -> GroupChecked {
        let mut folders = Vec::new();
        for (number, follower) in self.followers.iter_mut().enumerate() {
            let prepared = follower.prepare(|fetched| progress(number, fetched)).await;
            folders.push(prepared.map(|()| None));
        }
        if folders.iter().all(Result::is_ok) {
            let is_prepared = self.followers.iter().any(Follower::is_prepared);
            let waits_for = if is_prepared { self.difference() } else { None };
            if waits_for.is_some() {
                return GroupChecked { folders, waits_for };
            }
            self.swap(&mut folders);
        }
        let mut of_each = self.followers.iter().zip(&folders);
        let is_waiting = folders.iter().any(Result::is_err)
            && of_each.any(|(follower, result)| follower.is_prepared() && result.is_ok());
        let waits_for = is_waiting.then(|| "the folders whose check failed".to_owned());
        GroupChecked { folders, waits_for }
    }

    /// Replaces the links of what is prepared. Stores before which generations the folders get, so
    /// that the next group replaces the other links if this one is killed between two of them. If
    /// one link cannot be replaced, restores those that were.
    fn swap(&mut self, folders: &mut [Result<Option<Swapped>>]) {
        let _swap = span!("swap", "internal").entered();
        if !self.all(folders, Follower::begin_swap) {
            return;
        }
        if !self.all(folders, Follower::replace_link) {
            self.followers.iter_mut().for_each(Follower::undo_swap);
            return;
        }
        for (follower, result) in self.followers.iter_mut().zip(&mut *folders) {
            *result = Ok(follower.finish_swap());
        }
        for (follower, result) in self.followers.iter().zip(folders) {
            if matches!(result, Ok(Some(_))) {
                follower.remove_surplus();
            }
        }
    }

    /// Takes a step for each folder, until one fails. Returns whether none has failed.
    fn all(
        &mut self,
        folders: &mut [Result<Option<Swapped>>],
        step: fn(&mut Follower) -> Result<()>,
    ) -> bool {
        for (follower, result) in self.followers.iter_mut().zip(folders) {
            if let Err(error) = step(follower) {
                *result = Err(error);
                return false;
            }
        }
        true
    }

    /// Returns the values of the metadata that must be the same, if they are not.
    fn difference(&self) -> Option<String> {
        let name = self.same.as_deref()?;
        let next = || self.followers.iter().filter_map(Follower::next_generation);
        let mut values = next().map(|generation| generation.metadata.get(name));
        let first = values.next()?;
        if first.is_some() && values.all(|value| value == first) {
            return None;
        }
        let mut text = format!("the same {name:?}: ");
        for (at, generation) in next().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let _ = write!(text, "{separator}{} has ", generation.name());
            // Quoted and cut: the publisher can write anything.
            let _ = match generation.metadata.get(name) {
                Some(value) => write!(text, "{:?}", &value[..value.floor_char_boundary(100)]),
                None => write!(text, "none"),
            };
        }
        Some(text)
    }
}
