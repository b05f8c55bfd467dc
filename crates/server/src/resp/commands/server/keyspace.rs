//! Commands over the whole cache, and `INFO` and `TIME`.

use super::info::info;
use crate::cluster::{Admission, Refusal};
use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::state::{ClusterWait, Flags, Keys};

pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "dbsize", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: dbsize },
    Command { name: "flushall", arity: -1, keys: Keys::NONE, flags: TOGETHER, run: flush },
    Command { name: "flushdb", arity: -1, keys: Keys::NONE, flags: TOGETHER, run: flush },
    Command { name: "time", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: time },
    Command { name: "info", arity: -1, keys: Keys::NONE, flags: Flags::READS, run: info },
];

const TOGETHER: Flags = Flags::WRITES_TOGETHER;

/// `DBSIZE`
fn dbsize(call: &mut Call<'_>) -> Result {
    let len = call.server.keys();
    call.reply().integer(len.cast_signed());
    Ok(())
}

/// `FLUSHALL|FLUSHDB [ASYNC|SYNC]`: complete when it is replied, in both modes.
fn flush(call: &mut Call<'_>) -> Result {
    let how = call.args.get(1).to_ascii_lowercase();
    if call.args.len() > 2 || (call.args.len() == 2 && how != b"async" && how != b"sync") {
        return Err(SYNTAX);
    }
    if let Some(cluster) = &call.server.cluster {
        if cluster.forwards_resp() && !call.client.is_forwarded {
            match call.admission {
                // It does not know all nodes.
                Admission::NotPermitted => return Err(Failure::Reply(Refusal::Down.text())),
                Admission::Permitted => {
                    // Each node executes it, this one too.
                    call.client.cluster_wait.set(ClusterWait::Owner);
                    return Err(Failure::Full);
                }
                Admission::Checked => {}
            }
        }
        cluster.note_flush();
    }
    call.guard.clear();
    call.reply().ok();
    Ok(())
}

/// `TIME`: the time of the epoch guard, in milliseconds.
fn time(call: &mut Call<'_>) -> Result {
    let now_ms = call.guard.now_ms();
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk((now_ms / 1000).to_string().as_bytes());
    reply.bulk((now_ms % 1000 * 1000).to_string().as_bytes());
    Ok(())
}
