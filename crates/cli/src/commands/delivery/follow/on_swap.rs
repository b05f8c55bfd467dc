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
struct Running(Child);

impl OnSwap {
    pub(super) fn new(command: Option<String>) -> Self {
        Self(command)
    }

    /// Runs the command and waits for its end. If the returned future is dropped, the command is
    /// killed. Fails with a message.
    pub(super) async fn run(&self, swapped: &Swapped) -> Result<(), String> {
        let Some(command) = &self.0 else { return Ok(()) };
        let child = Command::new("/bin/sh")
            .args(["-c", command])
            .env("NUTHATCH_PATH", &swapped.path)
            .env("NUTHATCH_GENERATION", swapped.generation.to_string())
            .stdin(Stdio::null())
            // What the command starts ends with it.
            .process_group(0)
            .spawn();
        let mut running = Running(child.map_err(|e| format!("--on-swap: run /bin/sh: {e}"))?);
        let status = running.wait().await.map_err(|e| format!("--on-swap: wait: {e}"))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("--on-swap: the command ended with {status}"))
        }
    }
}

impl Running {
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
