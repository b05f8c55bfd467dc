//! What follows a swap: its line on standard output, then the command of `--on-swap`.

use super::metrics::FolderStatus;
use super::on_swap::OnSwap;
use crate::outcome::Failure;
use crate::terminal::print_result;
use nuthatch_delivery::Swapped;
use nuthatch_units::bytes;

/// The place for what goes wrong after a swap.
pub(super) trait SwapProblems {
    /// Reports why the delta of a file was not used.
    fn no_delta(&mut self, failure: &str);

    /// Reports that the line of a swap could not be printed.
    fn unprinted(&mut self, failure: Failure);

    /// Reports that the command of a folder failed.
    fn command_failed(&mut self, folder: &FolderStatus, problem: &str);

    /// Notes that commands run from now on, or that none does.
    fn set_runs_command(&mut self, _runs: bool) {}
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

/// Runs the commands of the folders that were swapped, one after the other.
pub(super) async fn run_commands(
    folders: &[(FolderStatus, OnSwap)],
    swaps: &[Option<Swapped>],
    problems: &mut impl SwapProblems,
) {
    for ((status, on_swap), swapped) in folders.iter().zip(swaps) {
        let Some(swapped) = swapped else { continue };
        problems.set_runs_command(true);
        if let Err(problem) = on_swap.run(swapped).await {
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
