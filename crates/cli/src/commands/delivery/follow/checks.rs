//! Checks of a group, one after the other.

use super::metrics::FolderStatus;
use super::on_swap::OnSwap;
use super::swaps::{self, SwapProblems};
use crate::outcome::Failure;
use nuthatch_delivery::{Error, Group, GroupChecked, Swapped, delay_before_check};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// A group whose folders are checked together; a single folder is a group of one.
pub(super) struct CheckedGroup {
    /// The name of the group; `None` for a single folder.
    pub(super) name: Option<String>,
    pub(super) group: Group,
    /// For each folder, its state and the command that runs after a swap.
    pub(super) folders: Vec<(FolderStatus, OnSwap)>,
}

impl CheckedGroup {
    /// Checks once.
    async fn check(&mut self) -> GroupChecked {
        let folders = &self.folders;
        let checked = self.group.check(|number, fetched| folders[number].0.fetching(fetched)).await;
        let of_each = self.group.followers().iter().zip(&checked.folders).zip(folders);
        for ((follower, result), (status, _)) in of_each {
            let is_waiting = checked.waits_for.is_some() && result.is_ok();
            status.checked(follower, result, is_waiting);
        }
        checked
    }

    /// Checks, waits and checks again, for as long as the returned future is polled.
    pub(super) async fn run(mut self, interval: Duration) {
        let (mut failures, mut waited_for) = (0, None);
        let completed = self.group.take_completed();
        for (swapped, (status, _)) in completed.iter().zip(&self.folders) {
            if let Some(swapped) = swapped {
                status.completed(swapped);
                swaps::print(swapped, &mut Warnings);
            }
        }
        let folders = (&mut self.group, &self.folders[..]);
        swaps::run_commands(folders, &completed, &mut Warnings).await;
        loop {
            let GroupChecked { folders, waits_for } = self.check().await;
            let has_failed = folders.iter().any(Result::is_err);
            failures = if has_failed { failures + 1 } else { 0 };
            if let Some(reason) = waits_for.as_deref().filter(|_| waits_for != waited_for) {
                let name = self.name.as_deref().unwrap_or_default();
                tracing::warn!(target: "nuthatch::follow", "group {name:?} waits for {reason}");
            }
            waited_for = waits_for;
            let of_each = folders.into_iter().zip(&self.folders);
            let swapped: Vec<_> =
                of_each.map(|(result, (status, _))| report(result, status)).collect();
            let folders = (&mut self.group, &self.folders[..]);
            swaps::run_commands(folders, &swapped, &mut Warnings).await;
            tokio::time::sleep(delay_before_check(interval, failures, random())).await;
        }
    }
}

/// Prints or logs the result of a check. Returns what was swapped in.
fn report(result: Result<Option<Swapped>, Error>, status: &FolderStatus) -> Option<Swapped> {
    match result {
        Ok(swapped) => swapped.inspect(|swapped| swaps::print(swapped, &mut Warnings)),
        Err(error) => {
            let (code, folder) = (error.code(), status.folder());
            tracing::warn!(target: "nuthatch::follow", code, folder, "{error}");
            None
        }
    }
}

/// Logs what goes wrong after a swap.
struct Warnings;

impl SwapProblems for Warnings {
    fn no_delta(&mut self, failure: &str) {
        tracing::warn!(target: "nuthatch::follow", "no delta used for {failure}");
    }

    fn unprinted(&mut self, _failure: Failure) {
        // The reader of the output may have ended; the folder has others.
    }

    fn command_failed(&mut self, folder: &FolderStatus, problem: &str) {
        let folder = folder.folder();
        tracing::warn!(target: "nuthatch::follow", folder, "{problem}");
    }

    fn command_not_started(folder: &str) {
        tracing::warn!(target: "nuthatch::follow", folder,
            "--on-swap: the command was not started; it runs at the next start");
    }
}

/// Returns a random number from 0 to 1. Each hasher of the standard library has other keys.
fn random() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}
