//! `nuthatch follow --once`.

use super::STOP_TIME;
use super::checks::CheckedGroup;
use super::metrics::FolderStatus;
use super::swaps::{self, SwapProblems};
use crate::commands::delivery::runtime;
use crate::outcome::{Failure, Outcome};
use crate::process::{Request, ServerProcess};
use crate::terminal::{Display, print_message, print_result};
use nuthatch_delivery::GroupChecked;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// What a check of all groups has found.
#[derive(Default)]
struct Found {
    problems: Vec<String>,
    /// Whether only one folder is followed.
    is_only: bool,
    /// Whether commands run after a swap.
    runs_command: Arc<AtomicBool>,
    /// The first failure to print a result. It does not keep other folders from being checked.
    unprinted: Option<Failure>,
}

/// Checks all groups once. A signal ends the check, and the command of `--on-swap` with it.
pub(super) fn follow(groups: Vec<CheckedGroup>) -> Result<Outcome, Failure> {
    let (process, runtime) = (ServerProcess::begin()?, runtime(1)?);
    let (stop, mut stopped) = watch::channel(false);
    // The receiver lives as long as the process.
    process.on_request(move |request| match request {
        Request::Stop | Request::Reload => drop(stop.send(true)),
        // The process ends within the time of the first request.
        Request::StopAtOnce => {}
    });
    let runs_command = Arc::new(AtomicBool::new(false));
    let mut check = runtime.spawn(check(groups, Arc::clone(&runs_command)));
    let found = runtime.block_on(async {
        tokio::select! {
            ended = &mut check => Some(ended),
            _ = stopped.wait_for(|stopped| *stopped) => {
                check.abort();
                let _ = tokio::time::timeout(STOP_TIME, check).await;
                None
            }
        }
    });
    // A read from a folder can block for good, for example on a network mount.
    runtime.shutdown_timeout(STOP_TIME);
    // A panic has ended the process.
    let Some(Ok(mut found)) = found else {
        let text = if runs_command.load(Ordering::Acquire) {
            "interrupted after a swap; a command of --on-swap that has started does not run again"
        } else {
            "interrupted; the next check continues what was fetched"
        };
        return Err(Failure::Error(text.to_owned()));
    };
    let Some(last) = found.problems.pop() else {
        return found.unprinted.map_or(Ok(Outcome::Success), Err);
    };
    for problem in found.problems {
        print_message(format_args!("error: {problem}"));
    }
    Err(Failure::Error(last))
}

/// `runs_command` is true while commands run after a swap.
async fn check(groups: Vec<CheckedGroup>, runs_command: Arc<AtomicBool>) -> Found {
    let display = Display::new(false, None);
    let is_only = matches!(&groups[..], [group] if group.folders.len() == 1);
    let mut found = Found { is_only, runs_command, ..Found::default() };
    for mut group in groups {
        // Of groups that were killed. What they wait for now must not delay the commands.
        let completed = group.group.take_completed();
        completed.iter().flatten().for_each(|swapped| swaps::print(swapped, &mut found));
        let folders = (&mut group.group, &group.folders[..]);
        swaps::run_commands(folders, &completed, &mut found).await;
        let progress = |_, fetched: nuthatch_delivery::Fetched| {
            display.transferred("fetching", "", fetched.bytes, fetched.total_bytes);
        };
        let GroupChecked { folders, waits_for } = group.group.check(progress).await;
        display.finish();
        let mut swapped_in = Vec::new();
        for (number, result) in folders.into_iter().enumerate() {
            let (status, _) = &group.folders[number];
            let follower = &group.group.followers()[number];
            match &result {
                Ok(None) if waits_for.is_none() && completed[number].is_none() => {
                    if let (Some(path), Some(number)) = (follower.path(), follower.generation()) {
                        let path = path.display();
                        found.print(&format!("{path}: generation {number} is current\n"));
                    }
                }
                Ok(swapped) => swapped.iter().for_each(|swapped| swaps::print(swapped, &mut found)),
                Err(error) => found.problem(status, error),
            }
            swapped_in.push(result.unwrap_or_default());
        }
        // After all lines: a signal that ends a command must not hide a swap.
        let folders = (&mut group.group, &group.folders[..]);
        swaps::run_commands(folders, &swapped_in, &mut found).await;
        let name = group.name.unwrap_or_default();
        let waits = waits_for.map(|reason| format!("group {name:?}: waits for {reason}"));
        found.problems.extend(waits);
    }
    found
}

impl Found {
    /// Adds a problem, with the folder if there are several ones.
    fn problem(&mut self, status: &FolderStatus, problem: &dyn std::fmt::Display) {
        let place = if self.is_only { String::new() } else { format!("{}: ", status.folder()) };
        self.problems.push(format!("{place}{problem}"));
    }

    fn print(&mut self, text: &str) {
        if let Err(failure) = print_result(text) {
            self.unprinted(failure);
        }
    }
}

impl SwapProblems for Found {
    fn no_delta(&mut self, failure: &str) {
        print_message(format_args!("note: no delta used for {failure}"));
    }

    fn unprinted(&mut self, failure: Failure) {
        self.unprinted.get_or_insert(failure);
    }

    fn command_failed(&mut self, folder: &FolderStatus, problem: &str) {
        self.problem(folder, &problem);
    }

    fn command_not_started(folder: &str) {
        print_message(format_args!(
            "note: {folder}: the command of --on-swap was not started; it runs at the next start"
        ));
    }

    fn set_runs_command(&mut self, runs: bool) {
        self.runs_command.store(runs, Ordering::Release);
    }
}
