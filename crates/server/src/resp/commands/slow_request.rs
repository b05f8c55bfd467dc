//! Adds requests to the slow log.

use super::{Call, Command};
use crate::state::slowlog::Entry;
use std::time::Duration;

/// Maximum arguments of an entry, and maximum bytes of an argument. The entry has the number of
/// arguments and bytes that were left out.
const MAX_ARGS: usize = 32;
const MAX_ARG_LEN: usize = 128;

/// Commands whose arguments may contain passwords.
const SECRET: &[&str] = &["auth", "hello", "config|set"];

/// Adds a request with this duration to the slow log.
pub(crate) fn add(call: &Call<'_>, command: &Command, us: u64) {
    // The arguments can be confidential: a trace has the name of the command only.
    let attributes = [("db.system.name", "nuthatch"), ("db.operation.name", command.name)];
    nuthatch_trace_context::record("slow command", Duration::from_micros(us), &attributes);
    let args = logged_args(call, command);
    let peer = call.client.connection.endpoints.peer.clone();
    let name = call.client.connection.info().name;
    let time_s = call.guard.now_ms() / 1000;
    let max_len = call.server.settings.max_slowlog_len();
    let entry = |id| Entry { id, time_s, us, args, peer, name };
    call.server.slowlog.add(entry, max_len);
}

/// Returns the arguments as the log contains them.
fn logged_args(call: &Call<'_>, command: &Command) -> Vec<Vec<u8>> {
    if SECRET.contains(&command.name) {
        let names = command.name.split('|').map(|name| name.as_bytes().to_vec());
        return names.chain([b"(redacted)".to_vec()]).collect();
    }
    let count = call.args.len();
    let kept = if count > MAX_ARGS { MAX_ARGS - 1 } else { count };
    let mut args: Vec<_> = call.args.from(0).take(kept).map(shortened).collect();
    if kept < count {
        args.push(format!("... ({} more arguments)", count - kept).into_bytes());
    }
    args
}

fn shortened(arg: &[u8]) -> Vec<u8> {
    match arg.split_at_checked(MAX_ARG_LEN) {
        Some((kept, rest)) if !rest.is_empty() => {
            [kept, format!("... ({} more bytes)", rest.len()).as_bytes()].concat()
        }
        _ => arg.to_vec(),
    }
}
