//! Messages to the service manager that has started this process, such as systemd: ready,
//! reloading, stopping, and the watchdog. Without one (`NOTIFY_SOCKET`), they do nothing.
//!
//! A service manager that does not read its socket must not stop the server: only [`ready`] waits,
//! for a short time.

use crate::logs;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tracing::error;

/// Maximum time for which [`ready`] waits for a service manager whose queue is full. A unit whose
/// message is lost would be restarted.
const MAX_READY_WAIT: Duration = Duration::from_secs(1);

/// Minimum time between two reports for the watchdog.
const MIN_WATCHDOG_INTERVAL: Duration = Duration::from_millis(10);

/// Reports that the server accepts connections.
pub(super) fn ready() {
    notify("READY=1", Some(MAX_READY_WAIT));
}

/// Reports that the settings are read again. [`ready`] must follow.
pub(super) fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1000;
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"), None);
}

/// Reports that the server drains.
pub(super) fn stopping() {
    notify("STOPPING=1", None);
}

/// Calls `check` several times within the time that the watchdog allows, on a thread of its own,
/// and reports to the service manager while it returns true. Does nothing without a watchdog
/// (`WatchdogSec=`).
pub(crate) fn start_watchdog(mut check: impl FnMut() -> bool + Send + 'static) {
    let variable = |name| std::env::var(name).ok();
    let (usec, pid) = (variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"));
    let Some(interval) = watchdog_interval(usec.as_deref(), pid.as_deref()) else { return };
    let mut is_alive = true;
    thread::spawn(move || {
        // Nothing is sent: receiving waits for the interval.
        let (_sender, nothing) = channel::<()>();
        loop {
            let before = std::mem::replace(&mut is_alive, check());
            if is_alive {
                notify("WATCHDOG=1", None);
            } else if before {
                error!(target: "nuthatch::server", "a thread does not respond; if that lasts, the \
                    watchdog of the service manager ends the process");
            }
            let _ = nothing.recv_timeout(interval);
        }
    });
}

/// Returns the time between two reports for the watchdog: a quarter of `WATCHDOG_USEC`. Returns
/// `None` without a watchdog, or if it is for another process than this (`WATCHDOG_PID`).
fn watchdog_interval(usec: Option<&str>, pid: Option<&str>) -> Option<Duration> {
    let usec: u64 = usec?.parse().ok().filter(|usec| *usec > 0)?;
    let is_ours = pid.is_none_or(|pid| pid == std::process::id().to_string());
    is_ours.then(|| MIN_WATCHDOG_INTERVAL.max(Duration::from_micros(usec / 4)))
}

/// Sends a message to the service manager, if there is one. Waits at most this time while its queue
/// is full, or not at all. A message that is not sent is a warning.
fn notify(message: &str, max_wait: Option<Duration>) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, message, max_wait) {
        let state = message.lines().next().unwrap_or_default();
        logs::warn(format_args!(
            "the service manager did not get {state} (NOTIFY_SOCKET is {}): {error}",
            socket.display()
        ));
    }
}

fn send(socket: &OsStr, message: &str, max_wait: Option<Duration>) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    match max_wait {
        Some(_) => sender.set_write_timeout(max_wait)?,
        None => sender.set_nonblocking(true)?,
    }
    sender.send_to_addr(message.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_watchdog_time_does_not_make_its_thread_spin() {
        let interval = |usec| watchdog_interval(Some(usec), None);
        assert_eq!(interval("0"), None);
        for usec in ["1", "3", "4", "40000"] {
            assert_eq!(interval(usec), Some(Duration::from_millis(10)), "{usec}");
        }
        assert_eq!(interval("2000000"), Some(Duration::from_millis(500)));
        assert_eq!((interval("soon"), watchdog_interval(None, None)), (None, None));
        let pid = std::process::id().to_string();
        assert!(watchdog_interval(Some("1000"), Some(&pid)).is_some());
        assert_eq!(watchdog_interval(Some("1000"), Some("1x")), None);
    }
}
