//! `SLOWLOG`: recent slow requests.

use crate::resp::commands::container::{self, part};
use crate::resp::commands::failure::REPLY_TOO_LONG;
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::resp::integer;
use crate::state::slowlog::Entry;

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

/// `SLOWLOG GET [count]`
fn get(call: &mut Call<'_>) -> Result {
    let max = match call.args.len() {
        2 => 10,
        3 => {
            let text = "ERR count should be greater than or equal to -1";
            let count = integer(call.args.get(2)).filter(|count| *count >= -1);
            count.ok_or(Failure::reply(text))?
        }
        _ => return Err(container::wrong(call, "SLOWLOG")),
    };
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let entries = call.server.slowlog.newest(max);
    let max_out_len = call.max_out_len();
    call.reply().array(entries.len());
    for Entry { id, time_s, us, args, peer, name } in entries {
        if call.out.len() > max_out_len {
            return Err(REPLY_TOO_LONG);
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
    let len = call.server.slowlog.len();
    call.reply().integer(len.cast_signed() as i64);
    Ok(())
}

/// `SLOWLOG RESET`
fn reset(call: &mut Call<'_>) -> Result {
    call.server.slowlog.clear();
    call.reply().ok();
    Ok(())
}

fn help(call: &mut Call<'_>) -> Result {
    container::help(call, HELP);
    Ok(())
}
