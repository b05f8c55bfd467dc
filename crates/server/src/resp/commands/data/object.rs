//! `OBJECT`: metadata of items.

use crate::resp::commands::{Call, Command, Failure, Result};
use crate::resp::{Reply, integer};
use crate::state::{Flags, Keys, SnapshotKey, is_list, values};

pub(crate) const COMMANDS: &[Command] = &[Command {
    name: "object",
    arity: -2,
    keys: Keys { first: 2, last: 2, step: 1 },
    flags: Flags::LOOKS_UP,
    run: object,
}];

const HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the number of recent reads of the <key>, from 0 to 3.",
    "IDLETIME <key>",
    "    Return 0: the time of the last access is not recorded.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
    "HELP",
    "    Prints this help.",
];

/// `OBJECT ENCODING | FREQ | IDLETIME | REFCOUNT key` or `OBJECT HELP`
///
/// The frequency of reads is 0 to 3. The time of the last read is not recorded, so the idle time is
/// 0. The encoding is the one that Redis would choose for such a value.
fn object(call: &mut Call<'_>) -> Result {
    let name = call.args.get(1).to_ascii_lowercase();
    let fact: fn(&[u8], u32) -> Fact = match name.as_slice() {
        b"encoding" => |value, _| Fact::Text(encoding(value)),
        b"freq" => |_, frequency| Fact::Number(frequency),
        b"idletime" => |_, _| Fact::Number(0),
        b"refcount" => |_, _| Fact::Number(1),
        b"help" if call.args.len() == 2 => return help(call),
        b"help" => return Err(wrong_count("help")),
        _ => {
            let name = String::from_utf8_lossy(call.args.get(1));
            let text = format!("ERR unknown subcommand '{name}'. Try OBJECT HELP.");
            return Err(Failure::Reply(text.into()));
        }
    };
    if call.args.len() != 3 {
        return Err(wrong_count(&String::from_utf8_lossy(&name)));
    }
    if let Some(key) = call.snapshot_key(call.args.get(2)) {
        return object_of_snapshot(call, key, fact);
    }
    let mut buffer = Vec::new();
    let item = call.guard.peek(call.args.get(2));
    let item = item.map(|item| values::raw_item(call.server, item, &mut buffer)).transpose()?;
    let fact = item.map(|item| fact(item.value(), item.frequency()));
    reply_fact(&mut call.reply(), fact.as_ref());
    Ok(())
}

fn reply_fact(reply: &mut Reply<'_>, fact: Option<&Fact>) {
    match fact {
        Some(Fact::Text(text)) => reply.bulk(text.as_bytes()),
        Some(Fact::Number(number)) => reply.integer(i64::from(*number)),
        None => reply.null(),
    }
}

/// Replies with a fact about a value of a snapshot. Its reads are not counted, and a list has the
/// encoding of a list.
fn object_of_snapshot(
    call: &mut Call<'_>,
    key: SnapshotKey<'_>,
    fact: fn(&[u8], u32) -> Fact,
) -> Result {
    let is_list = key.value_type()?.is_some_and(is_list);
    let mut reply = Reply::new(call.out, call.client.version);
    Ok(key.text(
        || call.server.max_reply_len(),
        |text| {
            let fact = text.map(|text| match fact(text, 0) {
                Fact::Text(_) if is_list => Fact::Text("listpack"),
                other => other,
            });
            reply_fact(&mut reply, fact.as_ref());
        },
    )?)
}

enum Fact {
    Text(&'static str),
    Number(u32),
}

fn wrong_count(subcommand: &str) -> Failure {
    let text = format!("ERR wrong number of arguments for 'object|{subcommand}' command");
    Failure::Reply(text.into())
}

fn help(call: &mut Call<'_>) -> Result {
    let mut reply = call.reply();
    reply.array(HELP.len());
    for line in HELP {
        reply.simple(line.as_bytes());
    }
    Ok(())
}

/// Returns the encoding that Redis would choose for such a value.
pub(crate) fn encoding(value: &[u8]) -> &'static str {
    match value.len() {
        1..=20 if integer(value).is_some() => "int",
        0..=44 => "embstr",
        _ => "raw",
    }
}
