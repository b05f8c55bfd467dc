//! Commands over lists, which only snapshots have.

use crate::resp::Reply;
use crate::resp::commands::failure::{Failure, REPLY_TOO_LONG};
use crate::resp::commands::modify::{clamp, signed};
use crate::resp::commands::{Call, Command, Result};
use crate::state::Flags;
use nuthatch_snapshot::Value;
use nuthatch_value_text::tsv_value;

pub(crate) const COMMANDS: &[Command] = &[
    Command::of_key("lrange", 4, Flags::LOOKS_UP, lrange),
    Command::of_key("llen", 2, Flags::LOOKS_UP, llen),
    Command::of_key("lindex", 3, Flags::LOOKS_UP, lindex),
];

const WRONG_TYPE: Failure =
    Failure::reply("WRONGTYPE Operation against a key holding the wrong kind of value");

/// Elements between checks of the length of a reply.
const STEP: usize = 1024;

/// Calls `read` with the list of the key in the first argument; `None` if the key is missing.
fn with_list<R>(
    call: &mut Call<'_>,
    read: impl FnOnce(Reply<'_>, Option<List<'_>>) -> R,
) -> Result<R> {
    let key = call.args.get(1);
    let Some(key) = call.server.snapshot_key(key) else {
        // The cache has no lists.
        return match call.guard.peek(key) {
            Some(_) => Err(WRONG_TYPE),
            None => Ok(read(call.reply(), None)),
        };
    };
    let reply = Reply::new(call.out, call.client.version);
    key.value(|value| match value {
        None => Ok(read(reply, None)),
        Some(value) => List::of(value).map(|list| read(reply, Some(list))).ok_or(WRONG_TYPE),
    })?
}

/// A list of a snapshot.
#[derive(Clone, Copy)]
struct List<'v>(&'v Value<'v>);

impl<'v> List<'v> {
    fn of(value: &'v Value<'v>) -> Option<Self> {
        let is_list = matches!(
            value,
            Value::I64List(_)
                | Value::F64List(_)
                | Value::F32List(_)
                | Value::StringList(_)
                | Value::EmptyList
        );
        is_list.then_some(Self(value))
    }

    fn len(self) -> usize {
        match self.0 {
            Value::I64List(list) => list.len(),
            Value::F64List(list) => list.len(),
            Value::F32List(list) => list.len(),
            Value::StringList(list) => list.len(),
            _ => 0,
        }
    }

    /// Replies with the element at an index, which must be below the length: as a string, as Redis
    /// does. `buffer` is for its text.
    fn reply_element(self, at: usize, reply: &mut Reply<'_>, buffer: &mut Vec<u8>) {
        let number = match self.0 {
            Value::I64List(list) => Value::I64(list[at]),
            Value::F64List(list) => Value::F64(list[at]),
            Value::F32List(list) => return reply_f32(list[at], reply, buffer),
            Value::StringList(list) => {
                return reply.bulk(list.get(at).unwrap_or_default().as_bytes());
            }
            _ => return reply.null(),
        };
        buffer.clear();
        tsv_value(&number, buffer);
        reply.bulk(buffer);
    }
}

/// Replies with a float of 32 bits with as few digits as it needs, fewer than one of 64 bits.
fn reply_f32(number: f32, reply: &mut Reply<'_>, buffer: &mut Vec<u8>) {
    buffer.clear();
    tsv_value(&Value::F32List(&[number]), buffer);
    let digits = buffer.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]"));
    let digits = digits.unwrap_or_default();
    // Those that JSON cannot represent are in quotes.
    reply.bulk(digits.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\"")).unwrap_or(digits));
}

/// `LRANGE key start stop`
fn lrange(call: &mut Call<'_>) -> Result {
    let (start, end) = (call.args.integer(2)?, call.args.integer(3)?);
    let max = call.server.max_reply_len();
    let before = call.out.len();
    with_list(call, |mut reply, list| {
        let range = list.and_then(|list| Some((list, clamp(start, end, list.len())?)));
        let Some((list, (from, to))) = range else {
            reply.array(0);
            return Ok(());
        };
        reply.array(to - from + 1);
        let mut buffer = Vec::new();
        for at in from..=to {
            list.reply_element(at, &mut reply, &mut buffer);
            if at % STEP == 0 && reply.len() - before > max {
                return Err(REPLY_TOO_LONG);
            }
        }
        if reply.len() - before > max { Err(REPLY_TOO_LONG) } else { Ok(()) }
    })?
}

/// `LLEN key`
fn llen(call: &mut Call<'_>) -> Result {
    with_list(call, |mut reply, list| reply.integer(signed(list.map_or(0, List::len))))
}

/// `LINDEX key index`: as in Redis, the index is checked only if there is a list.
fn lindex(call: &mut Call<'_>) -> Result {
    let args = call.args;
    with_list(call, |mut reply, list| {
        let Some(list) = list else {
            reply.null();
            return Ok(());
        };
        let index = args.integer(2)?;
        let at = match usize::try_from(index) {
            Ok(at) => Some(at),
            Err(_) => list.len().checked_sub(index.unsigned_abs() as usize),
        };
        match at.filter(|at| *at < list.len()) {
            Some(at) => list.reply_element(at, &mut reply, &mut Vec::new()),
            None => reply.null(),
        }
        Ok(())
    })?
}
