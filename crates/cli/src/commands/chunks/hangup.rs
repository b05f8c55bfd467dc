//! SIGHUP: a server reads its credentials again.

use crate::commands::Failure;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use std::thread;

/// Signals that ask a server to read its files again. Made before anybody can connect, so that no
/// signal ends the server.
pub(super) struct Hangups(Signals);

impl Hangups {
    pub(super) fn new() -> Result<Self, Failure> {
        let signals = Signals::new([SIGHUP]);
        signals.map(Self).map_err(|error| Failure::Error(error.to_string()))
    }

    /// Does something for each signal, on a thread of its own.
    pub(super) fn each(mut self, mut reload: impl FnMut() + Send + 'static) {
        thread::spawn(move || self.0.forever().for_each(|_| reload()));
    }
}
