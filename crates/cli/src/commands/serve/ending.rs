//! How the process ends: signals, and panics.

use crate::commands::Failure;
use crate::streams::tell;
use nuthatch_rpc::Stopper as StoreStopper;
use nuthatch_server::Stopper;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use std::panic;
use std::process;
use std::time::Duration;
use tracing::{error, info};

/// The exit status after a panic, as that of programs whose main thread panics.
const PANICKED: i32 = 101;

/// Ends the process when any of its threads panics, after the usual message. With one thread less
/// it would be half a server, which a supervisor does not restart.
pub(crate) fn end_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        tell("a thread panicked, which is a bug: the server ends, to be restarted");
        #[expect(clippy::disallowed_methods, reason = "a panic leaves nothing to clean up safely")]
        process::exit(PANICKED);
    }));
}

/// What stops when the process is asked to end.
pub(crate) struct Ending {
    pub(crate) cache: Stopper,
    pub(crate) store: Option<StoreStopper>,
    /// How long requests under way may take to finish.
    pub(crate) patience: Duration,
}

impl Ending {
    /// Waits for signals: SIGHUP reloads, the first other one drains, the second ends at once.
    pub(crate) fn heed(
        &self,
        mut signals: Signals,
        mut reload: impl FnMut() -> Result<(), Failure>,
    ) {
        let mut is_draining = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP => match reload() {
                    Ok(()) => info!(target: "nuthatch::server", "reloaded"),
                    Err(Failure::Usage(problem) | Failure::Error(problem)) => {
                        let text = "reload failed: what was there before stays in use";
                        error!(target: "nuthatch::server", %problem, "{text}");
                    }
                    Err(Failure::ClosedPipe) => {}
                },
                _ if is_draining => self.end_at_once(),
                _ => {
                    is_draining = true;
                    self.cache.drain(self.patience);
                    if let Some(store) = &self.store {
                        store.stop();
                    }
                }
            }
        }
    }

    fn end_at_once(&self) {
        self.cache.stop();
        if self.store.is_some() {
            // Its calls would have the rest of their time. What was acknowledged is stored.
            #[expect(
                clippy::disallowed_methods,
                reason = "the operator asked for it a second time"
            )]
            process::exit(0);
        }
    }
}
