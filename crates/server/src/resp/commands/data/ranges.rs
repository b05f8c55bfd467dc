//! Commands over parts of a value.

use crate::resp::commands::modify::{check_len, clamp, in_place_of};
use crate::resp::commands::{Call, Command, Failure, OUT_OF_MEMORY, Result};
use crate::state::Flags;
use crate::state::{update, values};

pub(crate) const COMMANDS: &[Command] = &[
    Command::of_key("append", 3, Flags::WRITES, append),
    Command::of_key("strlen", 2, Flags::LOOKS_UP, strlen),
    Command::of_key("getrange", 4, Flags::LOOKS_UP, getrange),
    Command::of_key("substr", 4, Flags::LOOKS_UP, getrange),
    Command::of_key("setrange", 4, Flags::WRITES, setrange),
];

/// `APPEND key value`
fn append(call: &mut Call<'_>) -> Result {
    let piece = call.args.get(2);
    let (place, key) = (call.place(), call.args.get(1));
    let len = update(
        place,
        key,
        |old| old + piece.len(),
        |item, value| {
            let old = item.map_or(&[][..], |item| item.value());
            value.reserve_exact(old.len() + piece.len());
            value.extend_from_slice(old);
            value.extend_from_slice(piece);
            (Some(in_place_of(item)), value.len())
        },
    )?;
    call.reply_count(len.ok_or(OUT_OF_MEMORY)?);
    Ok(())
}

/// `STRLEN key`
fn strlen(call: &mut Call<'_>) -> Result {
    let key = call.args.get(1);
    let len = match call.snapshot_key(key) {
        Some(key) => key.text_len(|| call.server.max_reply_len())?,
        None => call.guard.get(key).map_or(0, |item| values::raw_len(&item)),
    };
    call.reply_count(len);
    Ok(())
}

/// `GETRANGE key start end`, and its old name `SUBSTR`
fn getrange(call: &mut Call<'_>) -> Result {
    let (start, end) = (call.args.integer(2)?, call.args.integer(3)?);
    let mut buffer = Vec::new();
    let value = call.find_value(call.args.get(1), &mut buffer)?.unwrap_or_default();
    // The order is checked before clamping only for two negative numbers.
    let reversed = start < 0 && end < 0 && start > end;
    match clamp(start, end, value.len()) {
        Some((start, end)) if !reversed => call.reply().bulk(&value[start..=end]),
        _ => call.reply().bulk(b""),
    }
    Ok(())
}

/// `SETRANGE key offset value`
fn setrange(call: &mut Call<'_>) -> Result {
    let offset = call.args.integer(2)?;
    let Ok(offset) = usize::try_from(offset) else {
        return Err(Failure::reply("ERR offset is out of range"));
    };
    let piece = call.args.get(3);
    if piece.is_empty() {
        return strlen(call);
    }
    let end = offset.saturating_add(piece.len());
    check_len(call, end)?;
    let (place, key) = (call.place(), call.args.get(1));
    let len = update(
        place,
        key,
        |old| old.max(end),
        |item, value| {
            value.reserve_exact(item.map_or(0, |item| item.value().len()).max(end));
            value.extend_from_slice(item.map_or(&[], |item| item.value()));
            value.resize(value.len().max(end), 0);
            value[offset..end].copy_from_slice(piece);
            (Some(in_place_of(item)), value.len())
        },
    )?;
    call.reply_count(len.ok_or(OUT_OF_MEMORY)?);
    Ok(())
}
