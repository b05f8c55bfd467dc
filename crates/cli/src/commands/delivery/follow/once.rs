//! `nuthatch follow --once`.

use super::STOP_TIME;
use super::checks::{CheckedGroup, text};
use crate::commands::delivery::runtime;
use crate::outcome::{Failure, Outcome};
use crate::process::{Request, ServerProcess};
use crate::terminal::{Display, print_message, print_result};
use nuthatch_delivery::{GroupChecked, Swapped};
use tokio::sync::watch;

/// What a check of all groups has found.
#[derive(Default)]
struct Found {
    problems: Vec<String>,
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
    let mut check = runtime.spawn(check(groups));
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
        let text = "interrupted; the next check continues what was fetched";
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

async fn check(groups: Vec<CheckedGroup>) -> Found {
    let display = Display::new(false, None);
    let mut found = Found::default();
    let is_only = matches!(&groups[..], [group] if group.folders.len() == 1);
    for mut group in groups {
        let progress = |_, fetched: nuthatch_delivery::Fetched| {
            display.transferred("fetching", "", fetched.bytes, fetched.total_bytes);
        };
        let GroupChecked { folders, waits_for } = group.group.check(progress).await;
        display.finish();
        for (number, result) in folders.into_iter().enumerate() {
            let (status, on_swap) = &group.folders[number];
            let place = if is_only { String::new() } else { format!("{}: ", status.folder()) };
            match result {
                Ok(Some(swapped)) => {
                    let ran = on_swap.run(&swapped).await;
                    found.swapped(&swapped);
                    found.problems.extend(ran.err().map(|problem| format!("{place}{problem}")));
                }
                Ok(None) if waits_for.is_none() => {
                    let follower = &group.group.followers()[number];
                    if let (Some(path), Some(number)) = (follower.path(), follower.generation()) {
                        let path = path.display();
                        found.print(&format!("{path}: generation {number} is current\n"));
                    }
                }
                Ok(None) => {}
                Err(error) => found.problems.push(format!("{place}{error}")),
            }
        }
        let name = group.name.unwrap_or_default();
        let waits = waits_for.map(|reason| format!("group {name:?}: waits for {reason}"));
        found.problems.extend(waits);
    }
    found
}

impl Found {
    /// Prints what was swapped in.
    fn swapped(&mut self, swapped: &Swapped) {
        for failure in &swapped.delta_failures {
            print_message(format_args!("note: no delta used for {failure}"));
        }
        self.print(&text(swapped));
    }

    fn print(&mut self, text: &str) {
        let failure = print_result(text).err();
        self.unprinted = self.unprinted.take().or(failure);
    }
}
