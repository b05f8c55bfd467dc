//! Messages to the service manager that has started this process, such as systemd: ready,
//! reloading, stopping, and the watchdog. Without one (`NOTIFY_SOCKET`), they do nothing.

use crate::logs;
use sd_notify::NotifyState;
use std::sync::mpsc::channel;
use std::thread;
use tracing::error;

/// Reports that the server accepts connections.
pub(super) fn ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports that the settings are read again. [`ready`] must follow.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => logs::warn(format_args!("the service manager: {error}")),
    }
}

/// Reports that the server drains.
pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Calls `check` several times within the time that the watchdog allows, on a thread of its own,
/// and reports to the service manager while it returns true. Does nothing without a watchdog
/// (`WatchdogSec=`).
pub(crate) fn start_watchdog(mut check: impl FnMut() -> bool + Send + 'static) {
    let Some(time) = sd_notify::watchdog_enabled() else { return };
    let mut is_alive = true;
    thread::spawn(move || {
        // Nothing is sent: receiving waits for the interval.
        let (_sender, nothing) = channel::<()>();
        loop {
            let before = std::mem::replace(&mut is_alive, check());
            if is_alive {
                notify(&[NotifyState::Watchdog]);
            } else if before {
                error!(target: "nuthatch::server", "a thread does not respond; if that lasts, the \
                    watchdog of the service manager ends the process");
            }
            let _ = nothing.recv_timeout(time / 4);
        }
    });
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        logs::warn(format_args!("the service manager cannot be reached: {error}"));
    }
}
