//! The process of a server: signals, and its end when a thread panics.

use super::service;
use crate::outcome::Failure;
use crate::terminal::print_message;
use nuthatch_listen::refuse_pipes;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::panic;
use std::process;
use std::thread;

/// The exit status after a panic, as that of programs whose main thread panics.
const PANICKED: i32 = 101;

/// The signal on which a server panics, in builds with debug assertions: tests need it.
#[cfg(debug_assertions)]
const PANIC: i32 = signal_hook::consts::SIGUSR2;

/// What a signal requests of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The first SIGINT or SIGTERM: requests in progress may finish.
    Stop,
    /// Another SIGINT or SIGTERM: the process must end at once.
    StopAtOnce,
    /// SIGHUP.
    Reload,
}

/// The process of a server. Begins before a client can connect, so that no signal and no panic
/// finds the server unprepared.
pub(crate) struct ServerProcess(Signals);

impl ServerProcess {
    /// Registers SIGINT, SIGTERM and SIGHUP, and ends the process from now on when any of its
    /// threads panics.
    pub(crate) fn begin() -> Result<Self, Failure> {
        end_on_panic();
        let signals = [
            SIGINT,
            SIGTERM,
            SIGHUP,
            #[cfg(debug_assertions)]
            PANIC,
        ];
        Signals::new(signals).map(Self).map_err(|error| Failure::Error(error.to_string()))
    }

    /// Calls `handle` for each signal, on a thread of its own, for as long as the process runs.
    /// Call this when the server accepts connections: it reports that to the service manager, and
    /// files of credentials and settings can be no pipes from now on.
    pub(crate) fn on_request(mut self, mut handle: impl FnMut(Request) + Send + 'static) {
        refuse_pipes();
        service::ready();
        thread::spawn(move || {
            let mut is_stopping = false;
            for signal in self.0.forever() {
                match signal {
                    SIGHUP => {
                        service::reloading();
                        handle(Request::Reload);
                        service::ready();
                    }
                    #[cfg(debug_assertions)]
                    PANIC => panic!("SIGUSR2 was received"),
                    _ if is_stopping => handle(Request::StopAtOnce),
                    _ => {
                        is_stopping = true;
                        // First, since the process may end soon after; it does not wait.
                        service::stopping();
                        handle(Request::Stop);
                    }
                }
            }
        });
    }
}

/// Ends the process at once, since the operator has requested it a second time. Requests in
/// progress are cut off; writes that were acknowledged are stored.
pub(crate) fn end_at_once() -> ! {
    #[expect(clippy::disallowed_methods, reason = "the operator requested it a second time")]
    process::exit(0)
}

/// Ends the process when any of its threads panics, after the usual message. A server with one
/// thread less would go on in part, and a supervisor would not restart it.
fn end_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        report(panic);
        print_message("a thread panicked, which is a bug: the server ends; restart it");
        #[expect(clippy::disallowed_methods, reason = "a panic leaves nothing to clean up safely")]
        process::exit(PANICKED);
    }));
}
