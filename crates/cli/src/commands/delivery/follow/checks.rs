//! Checks of a group, one after the other.

use super::metrics::FolderStatus;
use super::on_swap::OnSwap;
use crate::terminal::print_result;
use nuthatch_delivery::{Error, Group, GroupChecked, Swapped, delay_before_check};
use nuthatch_units::bytes;
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
        let completed = self.group.take_completed().into_iter().zip(&self.folders);
        let completed = completed.filter_map(|(swapped, (status, on_swap))| {
            let swapped = swapped?;
            status.completed(&swapped);
            Some((report_swap(swapped), on_swap))
        });
        run_commands(completed.collect()).await;
        loop {
            let GroupChecked { folders, waits_for } = self.check().await;
            let has_failed = folders.iter().any(Result::is_err);
            failures = if has_failed { failures + 1 } else { 0 };
            if let Some(reason) = waits_for.as_deref().filter(|_| waits_for != waited_for) {
                let name = self.name.as_deref().unwrap_or_default();
                tracing::warn!(target: "nuthatch::follow", "group {name:?} waits for {reason}");
            }
            waited_for = waits_for;
            let mut swaps = Vec::new();
            for (result, (status, on_swap)) in folders.into_iter().zip(&self.folders) {
                swaps.extend(report(result, status).map(|swapped| (swapped, on_swap)));
            }
            run_commands(swaps).await;
            tokio::time::sleep(delay_before_check(interval, failures, random())).await;
        }
    }
}

/// Prints or logs the result of a check. Returns what was swapped in.
fn report(result: Result<Option<Swapped>, Error>, status: &FolderStatus) -> Option<Swapped> {
    match result {
        Ok(swapped) => swapped.map(report_swap),
        Err(error) => {
            let (code, folder) = (error.code(), status.folder());
            tracing::warn!(target: "nuthatch::follow", code, folder, "{error}");
            None
        }
    }
}

/// Prints a swap, and returns it.
fn report_swap(swapped: Swapped) -> Swapped {
    for failure in &swapped.delta_failures {
        tracing::warn!(target: "nuthatch::follow", "no delta used for {failure}");
    }
    // The reader of the output may have ended; the folder has others.
    let _ = print_result(&text(&swapped));
    swapped
}

/// Runs the commands of folders after their swaps, one after the other.
async fn run_commands(swaps: Vec<(Swapped, &OnSwap)>) {
    for (swapped, on_swap) in swaps {
        if let Err(problem) = on_swap.run(&swapped).await {
            tracing::warn!(target: "nuthatch::follow", "{problem}");
        }
    }
}

/// Returns the line about a swap.
pub(super) fn text(swapped: &Swapped) -> String {
    let (path, generation) = (swapped.path.display(), swapped.generation);
    let fetched = bytes(swapped.fetched_bytes);
    let built = match swapped.built_files {
        0 => String::new(),
        1 => ", built from a delta".to_owned(),
        files => format!(", {files} files built from deltas"),
    };
    format!("{path}: generation {generation} is current, {fetched} fetched{built}\n")
}

/// Returns a random number from 0 to 1. Each hasher of the standard library has other keys.
fn random() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}
