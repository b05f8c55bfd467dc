//! `DEBUG`: functions for tests of clients, if allowed.

use crate::resp::Version;
use crate::resp::commands::container;
use crate::resp::commands::data::object::encoding;
use crate::resp::commands::failure::{NOT_A_FLOAT, failure_of};
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::state::{Flags, Keys, SnapshotKey, is_list, values};
use std::iter;
use std::time::{Duration, Instant};

pub(crate) const COMMANDS: &[Command] =
    &[Command { name: "debug", arity: -2, keys: Keys::NONE, flags: Flags::READS, run: debug }];

const HELP: &[&str] = &[
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ERROR <string>",
    "    Reply with an error of this text.",
    "OBJECT <key>",
    "    Show the encoding and the length of a value.",
    "PROTOCOL <type>",
    "    Reply with a value of this type: string, integer, double, bignum, null, array, set, map,",
    "    attrib, push, verbatim, true or false.",
    "PANIC",
    "    Panic in the thread of this connection: `nuthatch serve` ends with status 101.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Accepted, and without effect.",
    "SLEEP <seconds>",
    "    Block the thread of this connection for this time, which may have decimals.",
    "HELP",
    "    Prints this help.",
];

/// `DEBUG name [argument...]`
fn debug(call: &mut Call<'_>) -> Result {
    if !call.server.debug.allows(call.client.peer()) {
        return Err(Failure::reply(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \
             \"local\", you can run it from a local connection, otherwise you need to set this \
             option in the configuration file, and then restart the server.",
        ));
    }
    match (call.args.get(1).to_ascii_lowercase().as_slice(), call.args.len()) {
        (b"sleep", 3) => sleep(call),
        (b"object", 3) => object(call),
        (b"protocol", 3) => protocol(call),
        (b"error", 3) => {
            let text = call.args.get(2);
            call.reply().error(text);
            Ok(())
        }
        (b"panic", 2) => panic!("DEBUG PANIC was called"),
        (b"set-active-expire", 3) => {
            call.reply().ok();
            Ok(())
        }
        (b"help", 2) => {
            container::help(call, HELP);
            Ok(())
        }
        _ => Err(container::wrong(call, "DEBUG")),
    }
}

/// `DEBUG SLEEP seconds`: blocks the thread. In Redis, that is the whole server.
fn sleep(call: &mut Call<'_>) -> Result {
    let seconds = std::str::from_utf8(call.args.get(2)).ok().and_then(|text| text.parse().ok());
    let seconds = seconds.filter(|seconds: &f64| !seconds.is_nan());
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
    sleep_until(time.ok_or(NOT_A_FLOAT)?, || call.server.is_ending());
    call.reply().ok();
    Ok(())
}

/// Sleeps for this time, or until `is_over` returns true.
fn sleep_until(time: Duration, is_over: impl Fn() -> bool) {
    /// Maximum time between two calls of `is_over`.
    const MAX_SLEEP: Duration = Duration::from_millis(50);
    let start = Instant::now();
    while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        if is_over() {
            return;
        }
        // May return earlier; the loop continues then.
        std::thread::park_timeout(left.min(MAX_SLEEP));
    }
}

/// `DEBUG OBJECT key`: the fields of Redis, as far as they apply.
fn object(call: &mut Call<'_>) -> Result {
    // The position of the key depends on the subcommand, so the table of commands has none.
    let admitted = call.client.admit(call.server, "debug", iter::once(call.args.get(2)));
    admitted.map_err(|denied| failure_of(denied, "debug"))?;
    if let Some(key) = call.snapshot_key(call.args.get(2)) {
        return object_of_snapshot(call, key);
    }
    let item = call.guard.peek(call.args.get(2)).ok_or(Failure::reply("ERR no such key"))?;
    let mut buffer = Vec::new();
    let value = values::raw_item(call.server, item, &mut buffer)?.value();
    let text = fields(encoding(value), value.len());
    call.reply().simple(text.as_bytes());
    Ok(())
}

/// Replies with the fields of a value of a snapshot. Its length is that of the text of `GET`.
fn object_of_snapshot(call: &mut Call<'_>, key: SnapshotKey<'_>) -> Result {
    let is_list = key.value_type()?.is_some_and(is_list);
    let found = key.text(
        || call.server.max_reply_len(),
        |text| {
            let encoding = |text| if is_list { "listpack" } else { encoding(text) };
            text.map(|text| fields(encoding(text), text.len()))
        },
    )?;
    let text = found.ok_or(Failure::reply("ERR no such key"))?;
    call.reply().simple(text.as_bytes());
    Ok(())
}

fn fields(encoding: &str, len: usize) -> String {
    format!(
        "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:{len} lru:0 \
         lru_seconds_idle:0"
    )
}

/// The double of `DEBUG PROTOCOL` in Redis.
#[expect(clippy::approx_constant, reason = "it is no other number")]
const A_DOUBLE: f64 = 3.141;

/// `DEBUG PROTOCOL type`: a reply of each type.
fn protocol(call: &mut Call<'_>) -> Result {
    let name = call.args.get(2).to_ascii_lowercase();
    let mut reply = call.reply();
    match name.as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(A_DOUBLE),
        b"bignum" => reply.big_number(b"1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.version() == Version::Resp3 {
                // No other command replies with attributes.
                reply.append(b"|1\r\n");
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" if reply.version() == Version::Resp2 => {
            return Err(Failure::reply("ERR RESP2 is not supported by this command"));
        }
        b"push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        b"verbatim" => reply.verbatim(b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => {
            return Err(Failure::reply(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn debug_sleep_ends_when_the_server_stops() {
        let checks = Cell::new(0);
        sleep_until(Duration::MAX, || {
            checks.set(checks.get() + 1);
            checks.get() == 3
        });
        assert_eq!(checks.get(), 3);
        sleep_until(Duration::ZERO, || panic!("there is nothing to wait for"));
    }
}
