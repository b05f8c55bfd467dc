//! The commands that bring snapshots to other machines.

pub(super) mod follow;
pub(super) mod generations;
mod keys;
pub(super) mod publish;

use crate::outcome::Failure;
use std::time::SystemTime;
use tokio::runtime::{Builder, Runtime};

/// Returns the time of the system.
#[expect(clippy::disallowed_methods, reason = "the command is where the time comes from")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Starts the runtime of a command with a number of threads.
fn runtime(threads: usize) -> Result<Runtime, Failure> {
    let built = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    built.map_err(|error| Failure::Error(format!("start a thread: {error}")))
}
