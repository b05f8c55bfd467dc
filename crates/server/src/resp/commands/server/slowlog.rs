//! The requests that took longest lately.

use crate::resp::commands::failure::ANSWER_TOO_LONG;
use crate::resp::commands::subcommands::{self, part};
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::resp::integer;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) const SUBCOMMANDS: &[Command] = &[
    part("slowlog|get", -2, get),
    part("slowlog|len", 2, len),
    part("slowlog|reset", 2, reset),
    part("slowlog|help", 2, help),
];

const HELP: &[&str] = &[
    "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
    "HELP",
    "    Print this help.",
];

/// Arguments of an entry, and bytes of an argument; what is beyond is counted.
const ARGS_MOST: usize = 32;
const ARG_LEN_MOST: usize = 128;

/// Commands whose arguments may be passwords.
const SECRET: &[&str] = &["auth", "hello", "config|set"];

#[derive(Clone, Debug)]
struct Entry {
    id: i64,
    time_s: u64,
    us: u64,
    args: Vec<Vec<u8>>,
    peer: String,
    name: String,
}

/// The log: the newest entry first, and the number of the next one.
#[derive(Debug, Default)]
pub(crate) struct SlowLog(Mutex<(VecDeque<Entry>, i64)>);

impl SlowLog {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Entry>, i64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many requests were logged, and how many are here.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let log = self.lock();
        (log.1.unsigned_abs(), log.0.len() as u64)
    }

    /// Adds a request that took so long.
    pub(crate) fn add(&self, call: &Call<'_>, command: &Command, us: u64) {
        let args = shown(call, command);
        let peer = call.client.connection.endpoints.peer.clone();
        let name = call.client.connection.words().name;
        let time_s = call.turn.now_ms() / 1000;
        let mut log = self.lock();
        let (entries, next) = &mut *log;
        let id = *next;
        *next += 1;
        entries.push_front(Entry { id, time_s, us, args, peer, name });
        entries.truncate(call.server.settings.slowlog_len_most());
    }
}

/// The arguments as the log shows them.
fn shown(call: &Call<'_>, command: &Command) -> Vec<Vec<u8>> {
    if SECRET.contains(&command.name) {
        let names = command.name.split('|').map(|name| name.as_bytes().to_vec());
        return names.chain([b"(redacted)".to_vec()]).collect();
    }
    let count = call.args.len();
    let kept = if count > ARGS_MOST { ARGS_MOST - 1 } else { count };
    let mut args: Vec<_> = call.args.from(0).take(kept).map(shortened).collect();
    if kept < count {
        args.push(format!("... ({} more arguments)", count - kept).into_bytes());
    }
    args
}

fn shortened(arg: &[u8]) -> Vec<u8> {
    match arg.split_at_checked(ARG_LEN_MOST) {
        Some((kept, rest)) if !rest.is_empty() => {
            [kept, format!("... ({} more bytes)", rest.len()).as_bytes()].concat()
        }
        _ => arg.to_vec(),
    }
}

/// `SLOWLOG GET [count]`
fn get(call: &mut Call<'_>) -> Result {
    let most = match call.args.len() {
        2 => 10,
        3 => {
            let text = "ERR count should be greater than or equal to -1";
            let count = integer(call.args.get(2)).filter(|count| *count >= -1);
            count.ok_or(Failure::answer(text))?
        }
        _ => return Err(subcommands::wrong(call, "SLOWLOG")),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let entries: Vec<_> = call.server.slowlog.lock().0.iter().take(most).cloned().collect();
    let answers_most = call.answers_most();
    call.reply().array(entries.len());
    for Entry { id, time_s, us, args, peer, name } in entries {
        if call.out.len() > answers_most {
            return Err(ANSWER_TOO_LONG);
        }
        let mut reply = call.reply();
        reply.array(6);
        reply.integer(id);
        reply.integer(time_s.cast_signed());
        reply.integer(us.cast_signed());
        reply.array(args.len());
        for arg in args {
            reply.bulk(&arg);
        }
        reply.bulk(peer.as_bytes());
        reply.bulk(name.as_bytes());
    }
    Ok(())
}

/// `SLOWLOG LEN`
fn len(call: &mut Call<'_>) -> Result {
    let len = call.server.slowlog.lock().0.len();
    call.reply().integer(len.cast_signed() as i64);
    Ok(())
}

/// `SLOWLOG RESET`
fn reset(call: &mut Call<'_>) -> Result {
    call.server.slowlog.lock().0.clear();
    call.reply().ok();
    Ok(())
}

fn help(call: &mut Call<'_>) -> Result {
    subcommands::help(call, HELP);
    Ok(())
}
