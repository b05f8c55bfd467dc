//! Commands over the values of several keys.

use super::strings::reply_searched;
use crate::resp::commands::failure::REPLY_TOO_LONG;
use crate::resp::commands::modify::check_len;
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::state::values;
use crate::state::{Flags, Keys};
use nuthatch_cache::{BatchKey, Write};

pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "mget", arity: -2, keys: Keys::ALL, flags: Flags::LOOKS_UP, run: mget },
    Command {
        name: "mset",
        arity: -3,
        keys: Keys::PAIRS,
        flags: Flags::WRITES_TOGETHER,
        run: mset,
    },
    Command {
        name: "msetnx",
        arity: -3,
        keys: Keys::PAIRS,
        flags: Flags::WRITES_TOGETHER,
        run: msetnx,
    },
];

/// Keys that are prefetched together: enough to overlap cache misses, and few enough that their
/// index lines stay in the first-level cache.
const BATCH: usize = 32;

/// `MGET key...`
fn mget(call: &mut Call<'_>) -> Result {
    let args = call.args;
    let max = call.max_out_len();
    call.reply().array(args.len() - 1);
    // The batch of the request has prefetched all keys, unless there are many or some are those of
    // snapshots.
    let is_prefetched = call.prefetched.len() == args.len() - 1;
    let mut keys = Vec::new();
    for start in (1..args.len()).step_by(BATCH) {
        let prefetched = if is_prefetched {
            &call.prefetched[start - 1..]
        } else {
            keys.clear();
            let hashes = args.from(start).take(BATCH).map(|key| call.server.cache.hash(key));
            keys.extend(hashes.map(BatchKey::to_read));
            call.guard.prefetch(&mut keys);
            &keys
        };
        for (key, prefetched) in args.from(start).take(BATCH).zip(prefetched) {
            if let Some(key) = call.snapshot_key(key) {
                call.reply_snapshot(key)?;
            } else if let Some(item) = call.guard.try_get_prefetched(key, prefetched) {
                call.reply_value(item)?;
            } else {
                reply_searched(call, key, prefetched.hash())?;
            }
            if call.out.len() > max {
                return Err(REPLY_TOO_LONG);
            }
        }
    }
    Ok(())
}

/// `MSET key value...`: stores all, or none if there is no memory for all.
fn mset(call: &mut Call<'_>) -> Result {
    check_pairs(call, "mset")?;
    set_all(call)?;
    call.reply().ok();
    Ok(())
}

/// `MSETNX key value...`: stores all, or none if a key exists or there is no memory for all.
fn msetnx(call: &mut Call<'_>) -> Result {
    check_pairs(call, "msetnx")?;
    let mut keys = call.args.from(1).step_by(2);
    let stored = !keys.any(|key| call.guard.peek(key).is_some());
    if stored {
        set_all(call)?;
    }
    call.reply().integer(i64::from(stored));
    Ok(())
}

fn set_all(call: &Call<'_>) -> Result {
    let (keys, stored) = (call.args.from(1).step_by(2), call.args.from(2).step_by(2));
    Ok(values::set_all(call.place(), keys.zip(stored), &Write::new())?)
}

/// Checks that each key has a value, and that each value can be stored.
fn check_pairs(call: &Call<'_>, name: &str) -> Result {
    if call.args.len().is_multiple_of(2) {
        let text = format!("ERR wrong number of arguments for '{name}' command");
        return Err(Failure::Reply(text.into()));
    }
    call.args.from(1).skip(1).step_by(2).try_for_each(|value| check_len(call, value.len()))
}
