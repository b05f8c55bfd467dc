//! `MEMORY`: use of memory.

use crate::resp::commands::container::{self, part};
use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::{Call, Command, Result};
use crate::resp::integer;
use crate::state::{Flags, Keys};

pub(crate) const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "memory|usage",
        arity: -3,
        keys: Keys { first: 2, last: 2, step: 1 },
        flags: Flags::LOOKS_UP,
        run: usage,
    },
    part("memory|stats", 2, stats),
    part("memory|doctor", 2, doctor),
    part("memory|purge", 2, purge),
    part("memory|help", 2, help),
];

const HELP: &[&str] = &[
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return memory problems reports.",
    "PURGE",
    "    Accepted, and without effect: the server returns freed memory by itself.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value.",
    "HELP",
    "    Prints this help.",
];

/// Bytes that `MEMORY USAGE` adds to key and value for the header, the expiry and the index.
const OVERHEAD: usize = 16;

fn help(call: &mut Call<'_>) -> Result {
    container::help(call, HELP);
    Ok(())
}

/// `MEMORY USAGE key [SAMPLES count]`
fn usage(call: &mut Call<'_>) -> Result {
    let mut at = 3;
    while at < call.args.len() {
        let is_samples = call.args.get(at).eq_ignore_ascii_case(b"samples");
        if !is_samples || at + 1 == call.args.len() {
            return Err(SYNTAX);
        }
        let count = integer(call.args.get(at + 1)).ok_or(crate::resp::commands::NOT_AN_INTEGER)?;
        if count < 0 {
            return Err(SYNTAX);
        }
        at += 2;
    }
    // A compressed value counts as it is stored.
    let key = call.args.get(2);
    let len = match call.server.snapshot_key(key) {
        Some(key) => key.stored_len()?,
        None => call.guard.peek(key).map(|item| item.key().len() + item.value().len()),
    };
    match len {
        Some(len) => call.reply().integer((len + OVERHEAD).cast_signed() as i64),
        None => call.reply().null(),
    }
    Ok(())
}

/// `MEMORY STATS`: the fields of Redis that apply.
fn stats(call: &mut Call<'_>) -> Result {
    let stats = call.server.cache.stats();
    let numbers = [
        ("total.allocated", stats.memory),
        ("maxmemory", stats.memory_limit),
        ("keys.count", stats.items),
        ("keys.bytes-per-key", stats.memory.checked_div(stats.items).unwrap_or(0)),
    ];
    let mut reply = call.reply();
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(number.cast_signed());
    }
    Ok(())
}

/// `MEMORY DOCTOR`
fn doctor(call: &mut Call<'_>) -> Result {
    let stats = call.server.cache.stats();
    let text = format!(
        "{} of {} bytes are in use, by items, index and connections. maxmemory limits their sum.",
        stats.memory, stats.memory_limit
    );
    call.reply().verbatim(text.as_bytes());
    Ok(())
}

/// `MEMORY PURGE`
fn purge(call: &mut Call<'_>) -> Result {
    call.reply().ok();
    Ok(())
}
