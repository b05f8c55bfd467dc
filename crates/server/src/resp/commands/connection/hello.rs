//! Commands for the connection itself: `HELLO`, `AUTH`, `PING`, `SELECT`, `QUIT` and similar ones.

use super::client::check_name;
use crate::resp::commands::failure::SYNTAX;
use crate::resp::commands::{Call, Command, Failure, NOT_AN_INTEGER, Result};
use crate::resp::{Version, integer};
use crate::state::users;
use crate::state::{Flags, Keys};

/// The Redis version whose commands are implemented. Clients choose features by it.
pub(crate) const COMPATIBLE_VERSION: &str = "7.0.15";

const BEFORE_AUTH: Flags = Flags { before_auth: true, ..Flags::READS };
const BEFORE_AUTH_AT_ONCE: Flags = Flags { never_queued: true, ..BEFORE_AUTH };

pub(crate) const COMMANDS: &[Command] = &[
    Command { name: "ping", arity: -1, keys: Keys::NONE, flags: Flags::READS, run: ping },
    Command { name: "echo", arity: 2, keys: Keys::NONE, flags: Flags::READS, run: echo },
    Command { name: "hello", arity: -1, keys: Keys::NONE, flags: BEFORE_AUTH, run: hello },
    Command { name: "auth", arity: -2, keys: Keys::NONE, flags: BEFORE_AUTH, run: auth },
    Command { name: "select", arity: 2, keys: Keys::NONE, flags: Flags::READS, run: select },
    Command { name: "quit", arity: -1, keys: Keys::NONE, flags: BEFORE_AUTH_AT_ONCE, run: quit },
    Command { name: "reset", arity: 1, keys: Keys::NONE, flags: BEFORE_AUTH_AT_ONCE, run: reset },
];

/// `PING [message]`
fn ping(call: &mut Call<'_>) -> Result {
    if call.args.len() > 2 {
        return Err(Failure::reply("ERR wrong number of arguments for 'ping' command"));
    }
    let message = call.args.get(1);
    if call.args.len() > 1 {
        call.reply().bulk(message);
    } else {
        call.reply().pong();
    }
    Ok(())
}

/// `ECHO message`
fn echo(call: &mut Call<'_>) -> Result {
    let message = call.args.get(1);
    call.reply().bulk(message);
    Ok(())
}

/// `SELECT index`: there is one database only.
fn select(call: &mut Call<'_>) -> Result {
    match integer(call.args.get(1)) {
        Some(0) => call.reply().ok(),
        Some(_) if call.server.cluster.is_some() => {
            return Err(Failure::reply("ERR SELECT is not allowed in cluster mode"));
        }
        Some(_) => return Err(Failure::reply("ERR DB index is out of range")),
        None => return Err(NOT_AN_INTEGER),
    }
    Ok(())
}

/// `QUIT`
fn quit(call: &mut Call<'_>) -> Result {
    call.client.closing = true;
    call.reply().ok();
    Ok(())
}

/// `RESET`
fn reset(call: &mut Call<'_>) -> Result {
    call.client.reset();
    call.reply().simple(b"RESET");
    Ok(())
}

/// `AUTH [user] password`
fn auth(call: &mut Call<'_>) -> Result {
    match call.args.len() {
        2 if !call.server.users().requires_password() => Err(Failure::reply(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        )),
        2 => log_in(call, users::DEFAULT.as_bytes(), call.args.get(1)),
        3 => log_in(call, call.args.get(1), call.args.get(2)),
        _ => Err(SYNTAX),
    }?;
    call.reply().ok();
    Ok(())
}

fn log_in(call: &mut Call<'_>, name: &[u8], password: &[u8]) -> Result {
    let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
    let right = call.client.log_in(call.server, name, password);
    if right { Ok(()) } else { Err(Failure::reply(wrong)) }
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`
fn hello(call: &mut Call<'_>) -> Result {
    let version = match (call.args.len(), integer(call.args.get(1))) {
        (1, _) => call.client.version,
        (_, Some(2)) => Version::Resp2,
        (_, Some(3)) => Version::Resp3,
        (_, Some(_)) => return Err(Failure::reply("NOPROTO unsupported protocol version")),
        (_, None) => {
            let text = "ERR Protocol version is not an integer or out of range";
            return Err(Failure::reply(text));
        }
    };
    let mut name = None;
    let mut at = 2;
    while at < call.args.len() {
        let option = call.args.get(at);
        let left = call.args.len() - at - 1;
        if option.eq_ignore_ascii_case(b"auth") && left >= 2 {
            log_in(call, call.args.get(at + 1), call.args.get(at + 2))?;
            at += 3;
        } else if option.eq_ignore_ascii_case(b"setname") && left >= 1 {
            name = Some(check_name(call.args.get(at + 1))?);
            at += 2;
        } else {
            let option = String::from_utf8_lossy(option);
            let text = format!("ERR Syntax error in HELLO option '{option}'");
            return Err(Failure::Reply(text.into()));
        }
    }
    if call.client.user.is_none() {
        return Err(Failure::reply(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and select \
             the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        call.client.connection.update_info(|info| name.clone_into(&mut info.name));
    }
    call.client.set_version(version);
    greet(call);
    Ok(())
}

fn greet(call: &mut Call<'_>) {
    let id = call.client.id.cast_signed();
    let version = if call.client.version == Version::Resp3 { 3 } else { 2 };
    let mode = call.server.mode();
    let mut reply = call.reply();
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", COMPATIBLE_VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(version);
    reply.bulk(b"id");
    reply.integer(id);
    for (name, value) in [("mode", mode), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}
