//! Commands over numeric values.

use super::extended::Extended;
use crate::resp::commands::NOT_AN_INTEGER;
use crate::resp::commands::failure::NOT_A_FLOAT;
use crate::resp::commands::modify::in_place_of;
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::resp::integer;
use crate::state::{Flags, values};

pub(crate) const COMMANDS: &[Command] = &[
    Command::of_key("incr", 2, Flags::WRITES, |call| add(call, 1)),
    Command::of_key("decr", 2, Flags::WRITES, |call| add(call, -1)),
    Command::of_key("incrby", 3, Flags::WRITES, incrby),
    Command::of_key("decrby", 3, Flags::WRITES, decrby),
    Command::of_key("incrbyfloat", 3, Flags::WRITES, incrbyfloat),
];

const WOULD_OVERFLOW: Failure = Failure::reply("ERR increment or decrement would overflow");

/// `INCRBY key increment`
fn incrby(call: &mut Call<'_>) -> Result {
    add(call, call.args.integer(2)?)
}

/// `DECRBY key decrement`
fn decrby(call: &mut Call<'_>) -> Result {
    let text = "ERR decrement would overflow";
    let by = call.args.integer(2)?.checked_neg().ok_or(Failure::reply(text))?;
    add(call, by)
}

/// `INCR key` and `DECR key`; `INCRBY` and `DECRBY` use it, too.
fn add(call: &mut Call<'_>, by: i64) -> Result {
    let sum = values::update(call.place(), call.args.get(1), |item, value| {
        let old = item.map_or(Some(0), |item| integer(item.value())).ok_or(NOT_AN_INTEGER);
        let sum = old.and_then(|old| old.checked_add(by).ok_or(WOULD_OVERFLOW));
        let write = sum.as_ref().ok().map(|sum| {
            value.extend_from_slice(itoa::Buffer::new().format(*sum).as_bytes());
            in_place_of(item)
        });
        (write, sum)
    })??;
    call.reply().integer(sum);
    Ok(())
}

/// `INCRBYFLOAT key increment`
fn incrbyfloat(call: &mut Call<'_>) -> Result {
    let by = call.args.get(2);
    let text = values::update(call.place(), call.args.get(1), |item, value| {
        let text = add_float(item.map_or(b"0", |item| item.value()), by);
        let write = text.as_ref().ok().map(|text| {
            value.extend_from_slice(text.as_bytes());
            in_place_of(item)
        });
        (write, text)
    })??;
    call.reply().bulk(text.as_bytes());
    Ok(())
}

fn add_float(number: &[u8], by: &[u8]) -> Result<String> {
    let number = Extended::parse(number).ok_or(NOT_A_FLOAT)?;
    let by = Extended::parse(by).ok_or(NOT_A_FLOAT)?;
    let infinite = Failure::reply("ERR increment would produce NaN or Infinity");
    number.add(by).text().ok_or(infinite)
}
