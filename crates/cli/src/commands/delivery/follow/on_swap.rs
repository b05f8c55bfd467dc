//! The command that runs after a swap.

use nuthatch_delivery::Swapped;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The delay between checks whether the command has ended.
const POLL: Duration = Duration::from_millis(20);

/// The command that runs after a swap, if there is one.
pub(super) struct OnSwap(Option<String>);

/// A command that runs. Dropping it kills the command.
pub(super) struct Running(Child);

impl OnSwap {
    pub(super) fn new(command: Option<String>) -> Self {
        Self(command)
    }

    /// Returns whether there is a command.
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Starts the command. Returns `None` if there is none. Fails with a message.
    pub(super) fn start(&self, swapped: &Swapped) -> Result<Option<Running>, String> {
        let Some(command) = &self.0 else { return Ok(None) };
        let child = Command::new("/bin/sh")
            .args(["-c", command])
            .env("NUTHATCH_PATH", &swapped.path)
            .env("NUTHATCH_GENERATION", swapped.generation.to_string())
            .stdin(Stdio::null())
            // What the command starts ends with it.
            .process_group(0)
            .spawn();
        let child = child.map_err(|e| format!("--on-swap: run /bin/sh: {e}"))?;
        Ok(Some(Running(child)))
    }
}

impl Running {
    /// Waits for the end of the command. If the returned future is dropped, the command is killed.
    /// Fails with a message.
    pub(super) async fn finish(mut self) -> Result<(), String> {
        let status = self.wait().await.map_err(|e| format!("--on-swap: wait: {e}"))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("--on-swap: the command ended with {status}"))
        }
    }

    async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = self.0.wait();
        }
    }
}
