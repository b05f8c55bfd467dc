//! All log lines of the server, in one file so that fields have consistent names.
//!
//! Requests are not logged. Lines that a client can cause repeatedly are rate-limited: at most five
//! of each kind in ten seconds. The field `unlogged` of the next line has the number of lines that
//! were suppressed.

use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::SlotSet;
use nuthatch_compress::{Error as CompressError, Evaluation};
use nuthatch_listen::RateLimit;
use nuthatch_tiered::Event;
use std::fmt::Display;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};
use tracing::{Level, enabled, error, event, info, warn};

/// Log targets, for filters.
const SERVER: &str = "nuthatch::server";
const CONNECTIONS: &str = "nuthatch::connections";
const USERS: &str = "nuthatch::users";
const CLUSTER: &str = "nuthatch::cluster";
const SNAPSHOTS: &str = "nuthatch::snapshots";

/// Maximum bytes of a user name that are logged, since clients choose them.
const MAX_NAME_LEN: usize = 64;

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
    info!(target: SERVER, drain_ms = milliseconds(patience), "stopping");
}

pub(crate) fn stopped() {
    info!(target: SERVER, "stopped");
}

pub(crate) fn dump_discarded(items: u64) {
    warn!(
        target: SERVER,
        items, "the dump in data-dir is not used: its server did not close it"
    );
}

pub(crate) fn dump_damaged(damage: &impl Display) {
    rate_limited!(WARN, SERVER, %damage, "a part of the dump is not used");
}

pub(crate) fn restored(restored: u64, skipped: u64, elapsed: Duration) {
    info!(target: SERVER, restored, skipped, ms = milliseconds(elapsed), "items restored");
}

pub(crate) fn restore_failed(error: &impl Display) {
    error!(target: SERVER, %error, "restoring items failed");
}

pub(crate) fn dumping(max: Duration) {
    info!(target: SERVER, dump_ms = milliseconds(max), "writing a dump of all items");
}

pub(crate) fn dumped(items: u64, bytes: u64, left_out: u64, elapsed: Duration) {
    info!(target: SERVER, items, bytes, left_out, ms = milliseconds(elapsed), "items dumped");
}

pub(crate) fn dump_cut(items: u64, left_out: u64) {
    warn!(target: SERVER, items, left_out, "the time for the dump is over: it lacks some items");
}

pub(crate) fn dump_failed(error: &impl Display) {
    error!(target: SERVER, %error, "the dump is not complete");
}

pub(crate) fn dump_lost(error: &impl Display) {
    error!(target: SERVER, %error, "no dump was written: its folder could not be closed");
}

pub(crate) fn restore_cut(restored: u64, lost: u64) {
    warn!(target: SERVER, restored, lost, "the server stops before all items were restored");
}

pub(crate) fn snapshot_opened(name: &str, path: &Path, entries: u64) {
    let path = path.display();
    info!(target: SNAPSHOTS, snapshot = name, %path, entries, "serving a snapshot");
}

pub(crate) fn snapshot_switched(name: &str, path: &Path, entries: u64) {
    info!(
        target: SNAPSHOTS,
        snapshot = name, path = %path.display(), entries, "switched to a new generation"
    );
}

pub(crate) fn snapshot_rejected(name: &str, error: &impl Display) {
    error!(
        target: SNAPSHOTS,
        snapshot = name, %error, "the new generation is not used, the one before still serves"
    );
}

pub(crate) fn snapshot_oversized(name: &str, error: &impl Display) {
    warn!(
        target: SNAPSHOTS,
        snapshot = name, %error, "a snapshot exceeds the memory: requests wait for the disk"
    );
}

pub(crate) fn snapshot_not_replaceable(name: &str, bytes: u64) {
    warn!(
        target: SNAPSHOTS,
        snapshot = name,
        bytes,
        "a new generation as long as this one does not fit in memory beside it and will be refused"
    );
}

pub(crate) fn snapshot_damaged(name: &str, error: &impl Display) {
    rate_limited!(ERROR, SNAPSHOTS, snapshot = name, %error, "a lookup met damage in a snapshot");
}

pub(crate) fn snapshot_write_refused(peer: &str, error: &str) {
    rate_limited!(WARN, SNAPSHOTS, peer, error, "connection closed: a write to a snapshot");
}

/// Logs an event of the disk tier.
pub fn disk_event(event: Event) {
    match event {
        Event::Damaged(damage) => {
            rate_limited!(WARN, SERVER, %damage, "a part of the disk tier is lost");
        }
        Event::Undecodable => rate_limited!(
            WARN,
            SERVER,
            "an item on disk was removed: the dictionary of its compressed value is unknown"
        ),
        Event::PowerLost { records } => warn!(
            target: SERVER,
            records,
            "the system stopped while the disk tier was open: its items may be out of date and \
             were removed"
        ),
        Event::Outdated { records } => warn!(
            target: SERVER,
            records,
            "the items in data-dir were removed: a server without a disk tier ended while it \
             restored them"
        ),
        Event::RecordsLost { records } => warn!(
            target: SERVER,
            records,
            "items on disk were removed: the removal log is damaged, and may have named them as \
             removed or overwritten"
        ),
        Event::Recovered { items, elapsed } => {
            let ms = milliseconds(elapsed);
            info!(target: SERVER, items, ms, "the items on disk are recovered");
        }
        Event::Off { error } => error!(
            target: SERVER,
            error,
            "the disk tier is off: nothing is written to disk any more; memory is used as before"
        ),
        Event::LogFailed { error } => error!(
            target: SERVER,
            error,
            "the removal of items could not be recorded: the items that are on disk now are lost \
             when the server stops"
        ),
        Event::Dumped { items, left_out, elapsed } => {
            let ms = milliseconds(elapsed);
            if left_out > 0 {
                warn!(
                    target: SERVER,
                    written = items, left_out, ms,
                    "some items in memory were not written to disk: there was no room or time"
                );
            } else {
                info!(target: SERVER, items, ms, "the items in memory were written to disk");
            }
        }
        _ => {}
    }
}

pub(crate) fn disk_not_closed(error: &dyn Display) {
    error!(target: SERVER, %error, "the disk tier could not be closed: items may be lost");
}

pub(crate) fn dump_cancelled() {
    warn!(target: SERVER, "no dump was written: a second signal stopped the server");
}

/// Logs what was decided about the dictionary of a group of keys.
pub(crate) fn group_evaluated(evaluation: &Evaluation) {
    let Evaluation { group, decision, sizes, dictionary, error, .. } = evaluation;
    let group = String::from_utf8_lossy(group);
    let dictionary = dictionary.map_or(0, NonZeroU32::get);
    let saved_percent = (sizes.saved() * 100.0).round();
    if let Some(error @ (CompressError::NoRoom { .. } | CompressError::File { .. })) = error {
        warn!(
            target: SERVER,
            group = group.as_ref(), ?decision, dictionary, %error,
            "a new dictionary was not adopted"
        );
    } else if let Some(error) = error {
        info!(
            target: SERVER,
            group = group.as_ref(), ?decision, dictionary, %error,
            "no dictionary was trained for a group of keys"
        );
    } else {
        info!(
            target: SERVER,
            group = group.as_ref(), ?decision, dictionary, saved_percent,
            "the dictionary of a group of keys was evaluated"
        );
    }
}

pub(crate) fn dictionary_lost(id: NonZeroU32, error: &CompressError) {
    warn!(
        target: SERVER,
        id, %error,
        "a dictionary cannot be loaded: items on disk that need it are lost"
    );
}

pub(crate) fn value_unreadable(error: &impl Display) {
    rate_limited!(ERROR, SERVER, %error, "a compressed value cannot be read");
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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

pub(crate) fn slots_moved(target: NodeId, slots: usize, items: u64, time: Duration) {
    let ms = time.as_millis() as u64;
    let target = target.to_string();
    let text = "all items of slots were sent to another node";
    info!(target: CLUSTER, %target, slots, items, ms, "{text}");
}

/// Logs that the node serves slots from now on, in an epoch and earlier ones.
pub(crate) fn slots_begin(slots: &SlotSet, epoch: u64) {
    info!(target: CLUSTER, %slots, epoch, "the node begins to serve slots");
}

/// Logs that the node has not served slots for some time.
pub(crate) fn slots_end(slots: &SlotSet, epoch: u64, ago: Duration) {
    let ms_ago = ago.as_millis() as u64;
    info!(target: CLUSTER, %slots, epoch, ms_ago, "the node no longer serves slots");
}

pub(crate) fn forward_failed(problem: &str) {
    rate_limited!(WARN, CLUSTER, problem, "a request was not forwarded to the owner of its slot");
}

pub(crate) fn move_failed(target: NodeId, slots: usize, problem: &str) {
    let target = target.to_string();
    rate_limited!(
        WARN,
        CLUSTER,
        target,
        slots,
        problem,
        "slots were not moved to another node, and are served here; the move is tried again"
    );
}

/// Logs what an operator of a cluster should know.
pub(crate) fn cluster_problem(problem: &str) {
    rate_limited!(WARN, CLUSTER, problem, "a problem of the cluster");
}

pub(crate) fn cluster_problem_ended(problem: &str) {
    rate_limited!(INFO, CLUSTER, problem, "a problem of the cluster has ended");
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
