//! Commands of Nuthatch over the stored form of values, for clients that decompress them
//! themselves.

use crate::resp::commands::failure::{REPLY_TOO_LONG, failure_of};
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::resp::{Reply, integer};
use crate::state::{Denied, Flags, Keys, SnapshotKey};
use nuthatch_compress::ValueInfo;
use std::num::NonZeroU32;

pub(crate) const COMMANDS: &[Command] = &[
    Command::of_key("nuthatch.getz", 2, Flags::LOOKS_UP, getz),
    Command {
        name: "nuthatch.dict",
        arity: 2,
        keys: Keys::NONE,
        flags: Flags::READS,
        run: dictionary,
    },
];

/// The first part of the reply for a value that is not compressed.
const RAW: i64 = -1;

const NOT_AN_ID: Failure = Failure::reply("ERR expected the id of a dictionary, 1 or more");

/// `NUTHATCH.GETZ key`: replies with the stored form of a value, and before it with the id of the
/// dictionary that decompressing it needs: -1 if it is not compressed, 0 if it needs none.
fn getz(call: &mut Call<'_>) -> Result {
    let key = call.args.get(1);
    if let Some(key) = call.snapshot_key(key) {
        return getz_of_snapshot(call, key);
    }
    let Some(item) = call.guard.get(key) else {
        call.reply().null();
        return Ok(());
    };
    let mut dictionary = RAW;
    if item.is_compressed() {
        let info = ValueInfo::read(item.value());
        let info = info.map_err(|error| Failure::Reply(format!("ERR {error}").into()))?;
        dictionary = info.dictionary.map_or(0, |id| i64::from(id.get()));
    }
    let mut reply = call.reply();
    reply.array(2);
    reply.integer(dictionary);
    reply.bulk_header(item.value().len());
    call.client.zero_copy.value(call.guard, &call.server.cache, &item, call.out);
    call.reply().bulk_end();
    Ok(())
}

/// Replies with a value of a snapshot as with one that is not compressed: the dictionary of a
/// snapshot is part of its file.
fn getz_of_snapshot(call: &mut Call<'_>, key: SnapshotKey<'_>) -> Result {
    let mut reply = Reply::new(call.out, call.client.version);
    Ok(key.text(
        || call.server.max_reply_len(),
        |text| match text {
            Some(text) => {
                reply.array(2);
                reply.integer(RAW);
                reply.bulk(text);
            }
            None => reply.null(),
        },
    )?)
}

/// `NUTHATCH.DICT id`: replies with a dictionary, in zstd's format. It contains parts of values, so
/// the user must have permission for all keys.
fn dictionary(call: &mut Call<'_>) -> Result {
    let server = call.server;
    if !call.client.may_all()
        && !call.client.current_user(server).is_some_and(|user| user.permissions.all_keys())
    {
        return Err(failure_of(Denied::Key, "nuthatch.dict"));
    }
    let id = integer(call.args.get(1)).and_then(|id| NonZeroU32::new(u32::try_from(id).ok()?));
    match server.compression.dictionary(id.ok_or(NOT_AN_ID)?) {
        Some(dictionary) if dictionary.as_bytes().len() > server.max_reply_len() => {
            return Err(REPLY_TOO_LONG);
        }
        Some(dictionary) => call.reply().bulk(dictionary.as_bytes()),
        None => call.reply().null(),
    }
    Ok(())
}
