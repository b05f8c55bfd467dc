//! Commands over the server as a whole.

use super::failure::SYNTAX;
use super::info::info;
use super::subcommands;
use super::{Call, Command, Failure, Flags, Keys, Result};
use std::time::{Duration, Instant};

pub(super) const COMMANDS: &[Command] = &[
    Command { name: "dbsize", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: dbsize },
    Command { name: "flushall", arity: -1, keys: Keys::NONE, flags: TOGETHER, run: flush },
    Command { name: "flushdb", arity: -1, keys: Keys::NONE, flags: TOGETHER, run: flush },
    Command { name: "time", arity: 1, keys: Keys::NONE, flags: Flags::READS, run: time },
    Command { name: "info", arity: -1, keys: Keys::NONE, flags: Flags::READS, run: info },
    Command { name: "debug", arity: -2, keys: Keys::NONE, flags: Flags::READS, run: debug },
];

const TOGETHER: Flags = Flags::WRITES_TOGETHER;

/// `DBSIZE`
fn dbsize(call: &mut Call<'_>) -> Result {
    let len = call.server.cache.len();
    call.reply().integer(len.cast_signed());
    Ok(())
}

/// `FLUSHALL|FLUSHDB [ASYNC|SYNC]`: both ways it is done when it is answered.
fn flush(call: &mut Call<'_>) -> Result {
    let how = call.args.get(1).to_ascii_lowercase();
    if call.args.len() > 2 || (call.args.len() == 2 && how != b"async" && how != b"sync") {
        return Err(SYNTAX);
    }
    call.turn.clear();
    call.reply().ok();
    Ok(())
}

/// `TIME`: that of the turn, to the millisecond.
fn time(call: &mut Call<'_>) -> Result {
    let now_ms = call.turn.now_ms();
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk((now_ms / 1000).to_string().as_bytes());
    reply.bulk((now_ms % 1000 * 1000).to_string().as_bytes());
    Ok(())
}

/// `DEBUG SLEEP seconds`, where it is allowed
fn debug(call: &mut Call<'_>) -> Result {
    if !call.server.debug {
        return Err(Failure::answer(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \
             \"local\", you can run it from a local connection, otherwise you need to set this \
             option in the configuration file, and then restart the server.",
        ));
    }
    let seconds = std::str::from_utf8(call.args.get(2)).ok().and_then(|text| text.parse().ok());
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let is_sleep = call.args.len() == 3 && call.args.get(1).eq_ignore_ascii_case(b"sleep");
    let Some(time) = time.filter(|_| is_sleep) else {
        return Err(subcommands::wrong(call, "DEBUG"));
    };
    stall(time);
    call.reply().ok();
    Ok(())
}

/// Keeps the thread from its work, which is what is asked for.
fn stall(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::thread::yield_now();
    }
}
