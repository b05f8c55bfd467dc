//! Permissions of memcached clients. Clients log in with their first `set`, as in memcached.

use super::resp_command::command;
use crate::memcache::reply::{self, Line};
use crate::memcache::{Error, KeyBuffer, Request, Store, StoreMode};
use crate::resp::commands::Client;
use crate::state::{Denied, Server};

/// Returns whether a request may be executed, and replies if it may not.
///
/// Before login, a client may send one request: a `set` of any key whose value is a user name, a
/// space and the password. The reply is `STORED`, and nothing is stored.
pub fn admit(
    client: &mut Client,
    server: &Server,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> bool {
    let mut room = KeyBuffer::default();
    let error = match client.admit(server, command(request), super::keys(request, &mut room)) {
        Ok(()) => return true,
        Err(Denied::All) => match request {
            Request::Store(Store { mode: StoreMode::Set, value, .. }) => {
                if log_in(client, server, value) {
                    reply::line(out, Line::Stored);
                    return false;
                }
                Error::LogInFailed
            }
            Request::Quit => return true,
            _ => Error::LogInFirst,
        },
        Err(Denied::Command) => Error::DeniedCommand,
        Err(Denied::Key) => Error::DeniedKey,
    };
    reply::error(out, error);
    false
}

/// Returns whether a request may be executed, and changes nothing.
pub(crate) fn may_execute(client: &Client, server: &Server, request: &Request<'_>) -> bool {
    let mut room = KeyBuffer::default();
    client.may(server, command(request), super::keys(request, &mut room))
}

fn log_in(client: &mut Client, server: &Server, value: &[u8]) -> bool {
    let space = value.iter().position(|byte| *byte == b' ');
    let Some((name, password)) = space.map(|at| value.split_at(at)) else { return false };
    client.log_in(server, name, &password[1..])
}
