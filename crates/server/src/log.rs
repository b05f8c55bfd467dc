//! All log lines of the server, in one file so that fields have consistent names.
//!
//! Requests are not logged. Lines that a client can cause repeatedly are rate-limited: at most five
//! of each kind in ten seconds. The field `unlogged` of the next line has the number of lines that
//! were suppressed.

use std::fmt::Display;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Level, enabled, error, event, info};

/// Log targets, for filters.
const SERVER: &str = "nuthatch::server";
const CONNECTIONS: &str = "nuthatch::connections";
const USERS: &str = "nuthatch::users";
const ADMIN: &str = "nuthatch::admin";

/// Maximum lines of one kind in each window of time.
const MAX_LINES: u32 = 5;
const WINDOW: Duration = Duration::from_secs(10);

/// Maximum bytes of a user name that are logged, since clients choose them.
const MAX_NAME_LEN: usize = 64;

/// Limits the lines of one kind, and counts those that it suppresses.
struct RateLimit(Mutex<Window>);

struct Window {
    start: Option<Instant>,
    logged: u32,
    unlogged: u64,
}

impl RateLimit {
    const fn new() -> Self {
        Self(Mutex::new(Window { start: None, logged: 0, unlogged: 0 }))
    }

    /// Returns the number of lines suppressed since the last one that was logged, if a line may be
    /// logged now. Otherwise counts a suppressed line and returns `None`.
    fn admit(&self, now: Instant) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.start.is_none_or(|start| now.duration_since(start) >= WINDOW) {
            (window.start, window.logged) = (Some(now), 0);
        }
        if window.logged == MAX_LINES {
            window.unlogged += 1;
            return None;
        }
        window.logged += 1;
        Some(std::mem::take(&mut window.unlogged))
    }
}

/// Logs a line that clients can cause, unless there were too many of its kind.
macro_rules! rate_limited {
    ($level:ident, $target:expr, $($line:tt)*) => {{
        static RATE_LIMIT: RateLimit = RateLimit::new();
        if enabled!(target: $target, Level::$level)
            && let Some(unlogged) = RATE_LIMIT.admit(Instant::now())
        {
            event!(target: $target, Level::$level, unlogged, $($line)*);
        }
    }};
}

/// The addresses for the clients of each system, and of the admin endpoint, separated by spaces.
pub(crate) struct Addresses {
    pub(crate) resp: String,
    pub(crate) memcache: String,
    pub(crate) pmc: String,
    pub(crate) mrcache: String,
    pub(crate) admin: String,
}

pub(crate) fn started(threads: usize, addresses: &Addresses, reactor: &str) {
    let Addresses { resp, memcache, pmc, mrcache, admin } = addresses;
    info!(
        target: SERVER,
        threads, %resp, %memcache, %pmc, %mrcache, %admin, event_loop = reactor, "started"
    );
}

pub(crate) fn stopping() {
    info!(target: SERVER, "stopping");
}

pub(crate) fn draining(patience: Duration) {
    let drain_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    info!(target: SERVER, drain_ms, "stopping");
}

pub(crate) fn stopped() {
    info!(target: SERVER, "stopped");
}

pub(crate) fn thread_failed(thread: usize, error: &io::Error) {
    error!(target: SERVER, thread, %error, "a thread ended: the server stops");
}

pub(crate) fn accept_failed(error: &io::Error) {
    rate_limited!(WARN, CONNECTIONS, %error, "a connection could not be accepted");
}

pub(crate) fn connection_refused(peer: &str, max: u64) {
    rate_limited!(WARN, CONNECTIONS, peer, maxclients = max, "a connection was refused: too many");
}

pub(crate) fn connection_killed(peer: &str, by: &str) {
    rate_limited!(INFO, CONNECTIONS, peer, by, "closed by CLIENT KILL");
}

pub(crate) fn connection_lost_rights(peer: &str) {
    rate_limited!(INFO, CONNECTIONS, peer, "closed: its user was removed or lost permissions");
}

pub(crate) fn certificate_not_accepted(peer: &str) {
    rate_limited!(INFO, CONNECTIONS, peer, "closed: the client CA does not verify its certificate");
}

pub(crate) fn output_limit_hit(peer: &str) {
    rate_limited!(INFO, CONNECTIONS, peer, "paused: the client does not read its replies");
}

pub(crate) fn buffers_shed(peer: &str, bytes: u64) {
    rate_limited!(
        WARN,
        CONNECTIONS,
        peer,
        bytes,
        "closed: memory is short, and its unread replies and incomplete requests use much"
    );
}

pub(crate) fn output_limit_exceeded(peer: &str, bytes: u64) {
    rate_limited!(
        WARN,
        CONNECTIONS,
        peer,
        bytes,
        "closed: its unsent replies exceed a client-output limit"
    );
}

pub(crate) fn input_refused(peer: &str, problem: &str) {
    let problem = problem.strip_prefix("ERR ").unwrap_or(problem);
    rate_limited!(WARN, CONNECTIONS, peer, problem, "a request was refused");
}

pub(crate) fn http_refused(peer: &str, port_of: &str) {
    rate_limited!(
        WARN,
        CONNECTIONS,
        peer,
        port_of,
        "closed: an HTTP request arrived, perhaps from a browser that a web page misuses; nothing \
         of the request was executed"
    );
}

pub(crate) fn value_refused(peer: &str, problem: &dyn Display, limit: &dyn Display) {
    rate_limited!(WARN, CONNECTIONS, peer, %problem, %limit, "a value was refused: too long");
}

pub(crate) fn request_malformed(peer: &str, problem: &dyn Display) {
    rate_limited!(DEBUG, CONNECTIONS, peer, %problem, "a request breaks the protocol");
}

/// Logs a failed login. The password is not logged.
pub(crate) fn login_failed(peer: &str, name: &[u8]) {
    let user = String::from_utf8_lossy(&name[..name.len().min(MAX_NAME_LEN)]);
    rate_limited!(WARN, USERS, peer, user = user.as_ref(), "a login failed");
}

pub(crate) fn admin_accept_failed(error: &io::Error) {
    rate_limited!(WARN, ADMIN, %error, "a connection to the admin port could not be accepted");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressed_lines_are_counted() {
        let (rate_limit, start) = (RateLimit::new(), Instant::now());
        for _ in 0..MAX_LINES {
            assert_eq!(rate_limit.admit(start), Some(0));
        }
        for _ in 0..3 {
            assert_eq!(rate_limit.admit(start + WINDOW / 2), None);
        }
        assert_eq!(rate_limit.admit(start + WINDOW), Some(3));
        assert_eq!(rate_limit.admit(start + WINDOW), Some(0));
    }
}
