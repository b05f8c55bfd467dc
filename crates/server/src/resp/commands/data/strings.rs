//! Commands over single values.

use crate::resp::Reply;
use crate::resp::commands::modify::with_expiry;
use crate::resp::commands::options::{self, SetOptions, Time, Ttl};
use crate::resp::commands::{Call, Command, OUT_OF_MEMORY, Result};
use crate::state::Flags;
use crate::state::new_value::{removal, update};
use crate::state::values;
use nuthatch_cache::{Condition, Expiry, Item, KeyHash, Outcome, Write};

pub(crate) const COMMANDS: &[Command] = &[
    Command::of_key("get", 2, Flags::LOOKS_UP, get),
    Command::of_key("set", -3, Flags::WRITES, set),
    Command::of_key("setnx", 3, Flags::WRITES, setnx),
    Command::of_key("setex", 4, Flags::WRITES, setex),
    Command::of_key("psetex", 4, Flags::WRITES, psetex),
    Command::of_key("getset", 3, Flags::WRITES, getset),
    Command::of_key("getex", -2, Flags::WRITES, getex),
    Command::of_key("getdel", 2, Flags::WRITES, getdel),
];

/// `GET key`
fn get(call: &mut Call<'_>) -> Result {
    let key = call.args.get(1);
    if let Some(key) = call.snapshot_key(key) {
        return call.reply_snapshot(key);
    }
    match call.prefetched_item(key) {
        Some(item) => call.reply_value(item),
        None => reply_searched(call, key, call.hash(key)),
    }
}

/// Replies with the value of a key that is not at the position that the prefetch found, or null.
#[inline(never)]
pub(crate) fn reply_searched(call: &mut Call<'_>, key: &[u8], hash: KeyHash) -> Result {
    match call.guard.get_hashed(key, hash) {
        Some(item) => call.reply_value(item)?,
        None => call.reply().null(),
    }
    Ok(())
}

/// `SET key value [NX | XX | IFEQ value] [GET]
/// [EX seconds | PX ms | EXAT seconds | PXAT ms | KEEPTTL]`
fn set(call: &mut Call<'_>) -> Result {
    let (key, value) = (call.args.get(1), call.args.get(2));
    if call.args.len() == 3 {
        values::set_hashed(call.place(), (key, call.hash(key)), value, &Write::new()).map(drop)?;
        call.reply().ok();
        return Ok(());
    }
    let options = SetOptions::parse(call.args)?;
    let expiry = match options.ttl {
        Ttl::Unset | Ttl::Persist => Expiry::Never,
        Ttl::Keep => Expiry::Keep,
        Ttl::At(time, at) => time.expiry(call, at, "set")?,
    };
    let write = Write::new().expiry(expiry);
    if options.get {
        return exchange(call, options.condition, write);
    }
    let outcome = match options.condition {
        Condition::Value(expected) => {
            values::set_if_equal(call.place(), key, (value, expected), write)?
        }
        condition => values::set(call.place(), key, value, &write.condition(condition))?,
    };
    match outcome {
        Outcome::Stored => call.reply().ok(),
        Outcome::Exists | Outcome::Missing => call.reply().null(),
    }
    Ok(())
}

/// Stores a value if the condition holds, and replies with the old one in any case.
fn exchange(call: &mut Call<'_>, condition: Condition<'_>, write: Write<'_>) -> Result {
    let start = call.out.len();
    let (place, args) = (call.place(), call.args);
    values::set_by(place, args.get(1), args.get(2), |item| {
        // Removes the reply of an earlier attempt, which is about another item.
        call.truncate_output(start);
        match &item {
            Some(item) => {
                if let Err(failure) = call.reply_value(*item) {
                    return (None, Err(failure));
                }
            }
            None => call.reply().null(),
        }
        let holds = match condition {
            Condition::Absent => item.is_none(),
            Condition::Present => item.is_some(),
            Condition::Value(value) => item.is_some_and(|item| item.value() == value),
            Condition::Always | Condition::Cas(_) => true,
        };
        (holds.then_some(write), Ok(()))
    })?
}

/// Replies with the old value of the key in the first argument, and changes its item. `len` returns
/// the length of the new value from that of the old one.
fn reply_old<'w>(
    call: &mut Call<'_>,
    len: impl Fn(usize) -> usize,
    mut change: impl FnMut(Option<Item<'_>>, &mut Vec<u8>) -> Option<Write<'w>>,
) -> Result {
    let start = call.out.len();
    let (place, key) = (call.place(), call.args.get(1));
    let (out, version) = (&mut *call.out, call.client.version);
    let changed = update(place, key, len, |item, value| {
        // Removes the reply of an earlier attempt, which is about another item.
        out.truncate(start);
        let mut reply = Reply::new(out, version);
        match item {
            Some(item) => reply.bulk(item.value()),
            None => reply.null(),
        }
        (change(item, value), ())
    })?;
    changed.ok_or(OUT_OF_MEMORY)
}

/// `SETNX key value`
fn setnx(call: &mut Call<'_>) -> Result {
    let write = Write::new().condition(Condition::Absent);
    let outcome = values::set(call.place(), call.args.get(1), call.args.get(2), &write)?;
    call.reply().integer(i64::from(outcome == Outcome::Stored));
    Ok(())
}

/// `SETEX key seconds value`
fn setex(call: &mut Call<'_>) -> Result {
    set_expiring(call, Time::EX, "setex")
}

/// `PSETEX key ms value`
fn psetex(call: &mut Call<'_>) -> Result {
    set_expiring(call, Time::PX, "psetex")
}

fn set_expiring(call: &mut Call<'_>, time: Time, name: &str) -> Result {
    let write = Write::new().expiry(time.expiry(call, 2, name)?);
    values::set(call.place(), call.args.get(1), call.args.get(3), &write).map(drop)?;
    call.reply().ok();
    Ok(())
}

/// `GETSET key value`
fn getset(call: &mut Call<'_>) -> Result {
    exchange(call, Condition::Always, Write::new())
}

/// `GETEX key [EX seconds | PX ms | EXAT seconds | PXAT ms | PERSIST]`
fn getex(call: &mut Call<'_>) -> Result {
    let key = call.args.get(1);
    let is_missing = || call.guard.peek(key).is_none() && call.guard.confirm_missing(key);
    let expiry = match options::getex(call.args)? {
        Ttl::Unset | Ttl::Keep => return get(call),
        // The time is not checked if there is no item.
        _ if is_missing() => return get(call),
        Ttl::Persist => Expiry::Never,
        Ttl::At(time, at) => time.expiry(call, at, "getex")?,
    };
    reply_old(
        call,
        |old| old,
        |item, value| {
            let item = item?;
            let changes = expiry != Expiry::Never || item.expires_ms().is_some();
            changes.then(|| with_expiry(item, expiry, value))
        },
    )
}

/// `GETDEL key`
fn getdel(call: &mut Call<'_>) -> Result {
    let write = removal();
    reply_old(call, |_| 0, |item, _| item.map(|_| write))
}
