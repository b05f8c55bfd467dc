//! What follows a swap: its line on standard output, then the command of `--on-swap`.

use super::metrics::FolderStatus;
use super::on_swap::OnSwap;
use crate::outcome::Failure;
use crate::terminal::print_result;
use nuthatch_delivery::{Group, Swapped};
use nuthatch_units::bytes;
use std::collections::VecDeque;
use std::marker::PhantomData;

/// The place for what goes wrong after a swap.
pub(super) trait SwapProblems {
    /// Reports why the delta of a file was not used.
    fn no_delta(&mut self, failure: &str);

    /// Reports that the line of a swap could not be printed.
    fn unprinted(&mut self, failure: Failure);

    /// Reports that the command of a folder failed.
    fn command_failed(&mut self, folder: &FolderStatus, problem: &str);

    /// Reports that the process ends before it has started the command of a folder.
    fn command_not_started(folder: &str);

    /// Notes that commands run from now on, or that none does.
    fn set_runs_command(&mut self, _runs: bool) {}
}

/// The folders whose commands were not started yet. Dropping it reports them.
struct NotStarted<'a, P: SwapProblems> {
    folders: VecDeque<&'a str>,
    problems: PhantomData<P>,
}

impl<P: SwapProblems> Drop for NotStarted<'_, P> {
    fn drop(&mut self) {
        self.folders.iter().for_each(|folder| P::command_not_started(folder));
    }
}

/// Prints what was swapped in.
pub(super) fn print(swapped: &Swapped, problems: &mut impl SwapProblems) {
    for failure in &swapped.delta_failures {
        problems.no_delta(failure);
    }
    if let Err(failure) = print_result(&text(swapped)) {
        problems.unprinted(failure);
    }
}

/// Runs the commands of the folders that were swapped, one after the other. A command whose start
/// was not stored runs at the next start of the follower.
pub(super) async fn run_commands<P: SwapProblems>(
    (group, folders): (&mut Group, &[(FolderStatus, OnSwap)]),
    swaps: &[Option<Swapped>],
    problems: &mut P,
) {
    let of_each = folders.iter().zip(swaps).enumerate();
    let swapped = of_each.filter_map(|(number, ((status, on_swap), swapped))| {
        Some((number, status, on_swap, swapped.as_ref()?)).filter(|_| on_swap.is_some())
    });
    let swapped: Vec<_> = swapped.collect();
    let names = swapped.iter().map(|(_, status, ..)| status.folder()).collect();
    let mut not_started = NotStarted::<P> { folders: names, problems: PhantomData };
    for (number, status, on_swap, swapped) in swapped {
        problems.set_runs_command(true);
        let started = on_swap.start(swapped);
        not_started.folders.pop_front();
        // Stored after the start: a command that runs twice loses nothing.
        if started.is_ok()
            && let Err(error) = group.confirm_swap(number)
        {
            let problem = format!("{error}; --on-swap: the command runs again at the next start");
            problems.command_failed(status, &problem);
        }
        let ended = match started {
            Ok(Some(running)) => running.finish().await,
            Ok(None) => Ok(()),
            Err(problem) => Err(problem),
        };
        if let Err(problem) = ended {
            problems.command_failed(status, &problem);
        }
    }
    problems.set_runs_command(false);
}

/// Returns the line about a swap.
fn text(swapped: &Swapped) -> String {
    let (path, generation) = (swapped.path.display(), swapped.generation);
    let fetched = bytes(swapped.fetched_bytes);
    let built = match swapped.built_files {
        0 => String::new(),
        1 => ", built from a delta".to_owned(),
        files => format!(", {files} files built from deltas"),
    };
    format!("{path}: generation {generation} is current, {fetched} fetched{built}\n")
}
