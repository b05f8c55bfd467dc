//! `CLIENT`: information on connections, and closing them.

use crate::log;
use crate::resp::commands::container::{self, part};
use crate::resp::commands::failure::{REPLY_TOO_LONG, SYNTAX};
use crate::resp::commands::{Call, Command, Failure, Result};
use crate::resp::integer;
use crate::state::ReplyMode;
use crate::state::clients::{ClientInfo, Connection};
use std::sync::Arc;

/// Maximum bytes of a client's name, of its library's name, and of that library's version.
const MAX_NAME_LEN: usize = 1024;

pub(crate) const SUBCOMMANDS: &[Command] = &[
    part("client|id", 2, id),
    part("client|setname", 3, set_name),
    part("client|getname", 2, get_name),
    part("client|setinfo", 4, set_info),
    part("client|list", -2, list),
    part("client|info", 2, info),
    part("client|kill", -3, kill),
    part("client|reply", 3, reply),
    part("client|no-evict", 3, no_evict),
    part("client|no-touch", 3, no_touch),
    part("client|getredir", 2, get_redirection),
    part("client|help", 2, help),
];

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME",
    "    Return the name of the current connection.",
    "GETREDIR",
    "    Return -1: there is no redirection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are ADDR, LADDR, ID, TYPE, USER and SKIPME.",
    "LIST [TYPE <type> | ID <id> ...]",
    "    Return information about client connections.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Accepted, and without effect.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETINFO (LIB-NAME|LIB-VER) <value>",
    "    Set the name or version of the client's library.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "HELP",
    "    Print this help.",
];

fn help(call: &mut Call<'_>) -> Result {
    container::help(call, HELP);
    Ok(())
}

/// Returns a text that `CLIENT LIST` can contain.
fn printable(text: &[u8]) -> Option<&str> {
    let printable = text.iter().all(u8::is_ascii_graphic);
    std::str::from_utf8(text).ok().filter(|_| printable)
}

/// Checks a name that a client chooses for itself.
pub(crate) fn check_name(name: &[u8]) -> Result<&str> {
    let text = "ERR Client names cannot contain spaces, newlines or special characters.";
    let name = printable(name).ok_or(Failure::reply(text))?;
    check_name_len("Client names", name)?;
    Ok(name)
}

/// Checks the length of a text that a client sends about itself: it is stored as long as the
/// connection, and its memory is not counted.
fn check_name_len(what: &str, name: &str) -> Result {
    if name.len() <= MAX_NAME_LEN {
        return Ok(());
    }
    let text = format!("ERR {what} cannot have more than {MAX_NAME_LEN} bytes");
    Err(Failure::Reply(text.into()))
}

/// `CLIENT ID`
fn id(call: &mut Call<'_>) -> Result {
    let id = call.client.id.cast_signed();
    call.reply().integer(id);
    Ok(())
}

/// `CLIENT SETNAME name`
fn set_name(call: &mut Call<'_>) -> Result {
    let name = check_name(call.args.get(2))?;
    call.client.connection.update_info(|info| name.clone_into(&mut info.name));
    call.reply().ok();
    Ok(())
}

/// `CLIENT GETNAME`
fn get_name(call: &mut Call<'_>) -> Result {
    let ClientInfo { name, .. } = call.client.connection.info();
    if name.is_empty() {
        call.reply().null();
    } else {
        call.reply().bulk(name.as_bytes());
    }
    Ok(())
}

/// `CLIENT SETINFO LIB-NAME|LIB-VER value`
fn set_info(call: &mut Call<'_>) -> Result {
    let (option, value) = (call.args.get(2), call.args.get(3));
    let (of_info, named): (fn(&mut ClientInfo) -> &mut String, _) =
        if option.eq_ignore_ascii_case(b"lib-name") {
            (|info| &mut info.library, "lib-name")
        } else if option.eq_ignore_ascii_case(b"lib-ver") {
            (|info| &mut info.library_version, "lib-ver")
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(Failure::Reply(format!("ERR Unrecognized option '{option}'").into()));
        };
    let Some(value) = printable(value) else {
        let text = "cannot contain spaces, newlines or special characters.";
        return Err(Failure::Reply(format!("ERR {named} {text}").into()));
    };
    check_name_len(named, value)?;
    call.client.connection.update_info(|info| value.clone_into(of_info(info)));
    call.reply().ok();
    Ok(())
}

/// Returns whether clients have this type: all are `normal`.
fn is_type(name: &[u8]) -> Result<bool> {
    match name.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(true),
        b"master" | b"slave" | b"replica" | b"pubsub" => Ok(false),
        _ => {
            let name = String::from_utf8_lossy(name);
            Err(Failure::Reply(format!("ERR Unknown client type '{name}'").into()))
        }
    }
}

/// `CLIENT LIST [TYPE type | ID id...]`
fn list(call: &mut Call<'_>) -> Result {
    let mut connections = call.server.clients.all();
    // A killed connection is left out, even if its thread has not closed it yet.
    connections.retain(|connection| !connection.is_killed());
    let option = call.args.get(2);
    if call.args.len() == 4 && option.eq_ignore_ascii_case(b"type") {
        if !is_type(call.args.get(3))? {
            connections.clear();
        }
    } else if call.args.len() > 3 && option.eq_ignore_ascii_case(b"id") {
        let mut chosen = Vec::new();
        for id in call.args.from(3) {
            let id = integer(id).ok_or(Failure::reply("ERR Invalid client ID"))?;
            // No connection has the number 0. Connections are sorted by number.
            let id = u64::try_from(id).unwrap_or(0);
            let found = connections.binary_search_by_key(&id, |connection| connection.id);
            chosen.extend(found.ok().map(|at| Arc::clone(&connections[at])));
        }
        connections = chosen;
    } else if call.args.len() != 2 {
        return Err(SYNTAX);
    }
    reply_lines(call, &connections)
}

/// `CLIENT INFO`
fn info(call: &mut Call<'_>) -> Result {
    reply_lines(call, &[Arc::clone(&call.client.connection)])
}

fn reply_lines(call: &mut Call<'_>, connections: &[Arc<Connection>]) -> Result {
    let now_ms = call.guard.now_ms();
    // The list of all connections is never refused. Only repeated numbers can make it longer.
    let max = if connections.len() > call.server.clients.len() {
        call.server.max_reply_len()
    } else {
        usize::MAX
    };
    let mut text = String::new();
    for connection in connections {
        text.push_str(&connection.line(now_ms, call.server.catalog));
        text.push('\n');
        if text.len() > max {
            return Err(REPLY_TOO_LONG);
        }
    }
    call.reply().verbatim(text.as_bytes());
    Ok(())
}

/// The connections that `CLIENT KILL` closes.
#[derive(Default)]
struct Filter<'a> {
    id: Option<u64>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    matches_none: bool,
    itself: bool,
}

impl<'a> Filter<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let mut filter = Self::default();
        let mut at = 2;
        while at < call.args.len() {
            if at + 1 == call.args.len() {
                return Err(SYNTAX);
            }
            let value = call.args.get(at + 1);
            match call.args.get(at).to_ascii_lowercase().as_slice() {
                b"id" => {
                    let text = "ERR client-id should be greater than 0";
                    let id = integer(value).and_then(|id| u64::try_from(id).ok());
                    filter.id = Some(id.filter(|id| *id > 0).ok_or(Failure::reply(text))?);
                }
                b"type" => filter.matches_none |= !is_type(value)?,
                b"addr" => filter.peer = Some(value),
                b"laddr" => filter.local = Some(value),
                b"user" => {
                    let exists = call.server.users().names().any(|name| name.as_bytes() == value);
                    if !exists {
                        let user = String::from_utf8_lossy(value);
                        return Err(Failure::Reply(format!("ERR No such user '{user}'").into()));
                    }
                    filter.user = Some(value);
                }
                b"skipme" => match value.to_ascii_lowercase().as_slice() {
                    b"yes" => filter.itself = false,
                    b"no" => filter.itself = true,
                    _ => return Err(SYNTAX),
                },
                _ => return Err(SYNTAX),
            }
            at += 2;
        }
        Ok(filter)
    }

    fn is_for(&self, connection: &Connection, own: u64) -> bool {
        let is = |wanted: Option<&[u8]>, found: &str| wanted.is_none_or(|w| w == found.as_bytes());
        !self.matches_none
            && (self.itself || connection.id != own)
            && self.id.is_none_or(|id| id == connection.id)
            && is(self.peer, &connection.endpoints.peer)
            && is(self.local, &connection.endpoints.local)
            && (self.user.is_none() || is(self.user, &connection.info().user))
    }
}

/// `CLIENT KILL address`, or `CLIENT KILL` with pairs of options and values
fn kill(call: &mut Call<'_>) -> Result {
    let by_address = call.args.len() == 3;
    let filter = if by_address {
        Filter { peer: Some(call.args.get(2)), itself: true, ..Filter::default() }
    } else {
        Filter::parse(call)?
    };
    let mut killed = 0;
    for connection in call.server.clients.all() {
        if connection.is_killed() || !filter.is_for(&connection, call.client.id) {
            continue;
        }
        killed += 1;
        log::connection_killed(&connection.endpoints.peer, call.client.peer());
        if connection.id == call.client.id {
            // Closed after its reply.
            call.client.closing = true;
        } else {
            call.server.clients.kill(&connection);
        }
    }
    match (by_address, killed) {
        (true, 0) => return Err(Failure::reply("ERR No such client")),
        (true, _) => call.reply().ok(),
        (false, _) => call.reply().integer(killed),
    }
    Ok(())
}

/// `CLIENT REPLY ON|OFF|SKIP`
fn reply(call: &mut Call<'_>) -> Result {
    let reply_mode = &mut call.client.state.reply_mode;
    match call.args.get(2).to_ascii_lowercase().as_slice() {
        b"on" => *reply_mode = ReplyMode::On,
        b"off" => *reply_mode = ReplyMode::Off,
        b"skip" if *reply_mode == ReplyMode::Off => {}
        b"skip" => *reply_mode = ReplyMode::SkipNext,
        _ => return Err(SYNTAX),
    }
    if *reply_mode == ReplyMode::On {
        call.reply().ok();
    }
    Ok(())
}

fn on_or_off(call: &Call<'_>) -> Result<bool> {
    match call.args.get(2).to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(SYNTAX),
    }
}

/// `CLIENT NO-EVICT ON|OFF`: excludes the client from closing for its buffers.
fn no_evict(call: &mut Call<'_>) -> Result {
    let on = on_or_off(call)?;
    call.client.connection.unevictable.set(on.into());
    call.reply().ok();
    Ok(())
}

/// `CLIENT NO-TOUCH ON|OFF`: accepted, and without effect.
fn no_touch(call: &mut Call<'_>) -> Result {
    let on = on_or_off(call)?;
    call.client.connection.untouching.set(on.into());
    call.reply().ok();
    Ok(())
}

/// `CLIENT GETREDIR`
fn get_redirection(call: &mut Call<'_>) -> Result {
    call.reply().integer(-1);
    Ok(())
}
