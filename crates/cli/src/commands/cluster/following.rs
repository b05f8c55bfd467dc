//! Follows slots that move, until they have moved.

use super::connect_args::Connector;
use super::connection::Connection;
use super::state::ClusterState;
use crate::outcome::Failure;
use crate::terminal::{Display, print_message};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks without a response before the command ends.
const MAX_FAILURES: u32 = 20;

/// The time without a change after which a message says so.
const STALL: Duration = Duration::from_secs(30);

/// The message.
const STALLED: &str = "no slot has moved for 30 seconds; the node that sends the slots logs why";

/// Follows slots that move.
pub(super) struct Following<'a> {
    connector: &'a Connector,
    interrupted: Receiver<()>,
    display: Display,
}

impl<'a> Following<'a> {
    /// Begins to handle interrupts.
    pub(super) fn begin(connector: &'a Connector, is_quiet: bool) -> Result<Self, Failure> {
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
        let mut signals = signals.map_err(|error| Failure::Error(error.to_string()))?;
        let (sender, interrupted) = channel();
        thread::spawn(move || {
            for _ in signals.forever() {
                // Without a receiver the command is ending.
                let _ = sender.send(());
            }
        });
        Ok(Self { connector, interrupted, display: Display::new(is_quiet, None) })
    }

    /// Waits until no slots are left of `total`. `left` returns the number of slots that are left.
    /// Returns the last state.
    ///
    /// # Errors
    ///
    /// Fails after an interrupt, and if no node responds for several seconds. The slots move on.
    pub(super) fn until_done(
        &self,
        connection: &mut Connection,
        total: usize,
        left: impl Fn(&ClusterState) -> usize,
    ) -> Result<ClusterState, Failure> {
        let mut failures = 0;
        let (mut last_left, mut last_change) = (usize::MAX, Instant::now());
        loop {
            match ClusterState::fetch(connection) {
                Ok(state) => {
                    let left = left(&state);
                    if left == 0 {
                        self.display.finish();
                        return Ok(state);
                    }
                    let done = total.saturating_sub(left) as u64;
                    self.display.stage("moving slots", done, total.max(left) as u64);
                    failures = 0;
                    if left != last_left {
                        (last_left, last_change) = (left, Instant::now());
                    } else if last_change.elapsed() > STALL {
                        last_change = Instant::now();
                        self.display.suspend(|| print_message(STALLED));
                    }
                }
                Err(problem) if failures == MAX_FAILURES => {
                    return Err(self.failure(&format!("{problem}; the slots move on")));
                }
                Err(_) => {
                    failures += 1;
                    if let Ok(again) = self.connector.connect() {
                        *connection = again;
                    }
                }
            }
            if self.interrupted.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
                let text = "interrupted: the slots move on; nuthatch cluster status shows them";
                return Err(self.failure(text));
            }
        }
    }

    fn failure(&self, text: &str) -> Failure {
        self.display.finish();
        Failure::Error(text.to_owned())
    }
}
