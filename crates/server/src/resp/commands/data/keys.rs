//! Commands over keys, independent of their values.

use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::state::{Flags, Keys, is_list, values};
use nuthatch_cache::{Expiry, Item, Write};

const fn of_keys(
    name: &'static str,
    arity: i32,
    flags: Flags,
    run: fn(&mut Call<'_>) -> Result,
) -> Command {
    let keys = if arity < 0 { Keys::ALL } else { Keys::TWO };
    Command { name, arity, keys, flags, run }
}

pub(crate) const COMMANDS: &[Command] = &[
    of_keys("del", -2, Flags::WRITES, remove),
    of_keys("unlink", -2, Flags::WRITES, remove),
    of_keys("exists", -2, Flags::LOOKS_UP, exists),
    of_keys("touch", -2, Flags::LOOKS_UP, touch),
    Command::of_key("type", 2, Flags::LOOKS_UP, type_of),
    of_keys("rename", 3, Flags::WRITES_TOGETHER, rename),
    of_keys("renamenx", 3, Flags::WRITES_TOGETHER, renamenx),
    Command { name: "copy", arity: -3, keys: Keys::TWO, flags: Flags::WRITES_TOGETHER, run: copy },
];

const NO_SUCH_KEY: Failure = Failure::reply("ERR no such key");

/// Replies with the number of keys for which `holds` is true.
fn count(call: &mut Call<'_>, mut holds: impl FnMut(&Call<'_>, &[u8]) -> bool) -> Result {
    let mut count = 0;
    for key in call.args.from(1) {
        let is_counted = match call.snapshot_key(key) {
            // Writes to such a key are refused before.
            Some(key) => key.value_type()?.is_some(),
            None => holds(call, key),
        };
        count += usize::from(is_counted);
    }
    call.reply_count(count);
    Ok(())
}

/// `DEL key...` and `UNLINK key...`: not atomic for several keys, since nearly every request has
/// one, and an exclusive guard is too expensive for it.
fn remove(call: &mut Call<'_>) -> Result {
    count(call, |call, key| call.guard.remove(key))
}

/// `EXISTS key...`: a repeated key counts each time.
fn exists(call: &mut Call<'_>) -> Result {
    count(call, |call, key| call.guard.peek(key).is_some())
}

/// `TOUCH key...`
fn touch(call: &mut Call<'_>) -> Result {
    count(call, |call, key| call.guard.get(key).is_some())
}

/// `TYPE key`
fn type_of(call: &mut Call<'_>) -> Result {
    let key = call.args.get(1);
    let name: &[u8] = match call.snapshot_key(key) {
        Some(key) => match key.value_type()? {
            Some(value_type) if is_list(value_type) => b"list",
            Some(_) => b"string",
            None => b"none",
        },
        None if call.guard.peek(key).is_some() => b"string",
        None => b"none",
    };
    call.reply().simple(name);
    Ok(())
}

/// Stores a copy of an item under another key.
fn store_as(call: &Call<'_>, item: Item<'_>, key: &[u8]) -> Result {
    let expiry = item.expires_ms().map_or(Expiry::Never, Expiry::At);
    let write = Write::new().expiry(expiry).flags(item.flags());
    // A compressed value is compressed again: its old dictionary may be about to be removed.
    let mut buffer = Vec::new();
    let item = values::raw_item(call.server, item, &mut buffer)?;
    Ok(values::set(call.place(), key, item.value(), &write).map(drop)?)
}

/// Moves an item to another key, unless it is the same.
fn move_to(call: &Call<'_>, item: Item<'_>, from: &[u8], to: &[u8]) -> Result {
    if from != to {
        store_as(call, item, to)?;
        call.guard.remove(from);
    }
    Ok(())
}

/// `RENAME key newkey`
fn rename(call: &mut Call<'_>) -> Result {
    let (from, to) = (call.args.get(1), call.args.get(2));
    let item = call.guard.peek(from).ok_or(NO_SUCH_KEY)?;
    move_to(call, item, from, to)?;
    call.reply().ok();
    Ok(())
}

/// `RENAMENX key newkey`
fn renamenx(call: &mut Call<'_>) -> Result {
    let (from, to) = (call.args.get(1), call.args.get(2));
    let item = call.guard.peek(from).ok_or(NO_SUCH_KEY)?;
    let free = call.guard.peek(to).is_none();
    if free {
        move_to(call, item, from, to)?;
    }
    call.reply().integer(i64::from(free));
    Ok(())
}

/// `COPY source destination [DB 0] [REPLACE]`
fn copy(call: &mut Call<'_>) -> Result {
    let args = call.args;
    let mut replace = false;
    let mut at = 3;
    while at < args.len() {
        at += if args.is(at, "replace") {
            replace = true;
            1
        } else if args.is(at, "db") && at + 1 < args.len() {
            // There is one database only.
            if check_32_bits(args.integer(at + 1)?)? != 0 {
                return Err(Failure::reply("ERR DB index is out of range"));
            }
            2
        } else {
            return Err(SYNTAX);
        };
    }
    let (from, to) = (args.get(1), args.get(2));
    if from == to {
        return Err(Failure::reply("ERR source and destination objects are the same"));
    }
    let source = call.guard.peek(from).filter(|_| replace || call.guard.peek(to).is_none());
    if let Some(item) = source {
        store_as(call, item, to)?;
    }
    call.reply().integer(i64::from(source.is_some()));
    Ok(())
}

/// Checks that a number fits in 32 bits.
fn check_32_bits(number: i64) -> Result<i64> {
    if i32::try_from(number).is_ok() {
        return Ok(number);
    }
    let (min, max) = (i32::MIN, i32::MAX);
    let text = format!("ERR value is out of range, value must between {min} and {max}");
    Err(Failure::Reply(text.into()))
}
