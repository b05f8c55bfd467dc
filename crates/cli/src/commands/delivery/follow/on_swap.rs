//! The command that runs after a swap.

use crate::outcome::Failure;
use nuthatch_delivery::Swapped;
use std::process::{Command, Stdio};

/// The command that runs after a swap, if there is one.
pub(super) struct OnSwap<'a>(Option<&'a str>);

impl<'a> OnSwap<'a> {
    pub(super) fn new(command: Option<&'a str>) -> Self {
        Self(command)
    }

    /// Runs the command and waits for its end.
    pub(super) fn run(&self, swapped: &Swapped) -> Result<(), Failure> {
        let Some(command) = self.0 else { return Ok(()) };
        let status = Command::new("/bin/sh")
            .args(["-c", command])
            .env("NUTHATCH_PATH", &swapped.path)
            .env("NUTHATCH_GENERATION", swapped.generation.to_string())
            .stdin(Stdio::null())
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                Err(Failure::Error(format!("--on-swap: the command ended with {status}")))
            }
            Err(error) => Err(Failure::Error(format!("--on-swap: run /bin/sh: {error}"))),
        }
    }
}
