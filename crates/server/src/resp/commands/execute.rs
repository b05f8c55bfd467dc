//! Looks up the command of a request, checks permissions, and queues or runs it.

use super::failure::failure_of;
use super::run::{OUT_OF_MEMORY, check, refused, run, takes};
use super::server::memcached;
use super::table::{find_part, lookup};
use super::{Args, Call, Client, Failure, Found, Result};
use crate::state::{Denied, ReplyMode, Server, State};

/// Executes a request and appends its reply.
///
/// # Errors
///
/// - [`Failure::Full`] if there is no memory. The request had no effect and got no reply: the
///   caller
///   renews the guard and calls this once more.
/// - [`Failure::Reply`] is never returned: such errors are replied.
#[inline]
pub fn execute(call: &mut Call<'_>) -> Result {
    let found = lookup(call.args.get(0));
    execute_found(call, found)
}

/// Executes a command that was looked up already, like [`execute`].
///
/// # Errors
///
/// Those of [`execute`].
#[inline]
pub fn execute_found(call: &mut Call<'_>, found: Option<Found>) -> Result {
    match found {
        Some(found)
            if call.client.state == State::PLAIN
                && takes(found.command.arity, call.args.len())
                && !found.command.flags.container =>
        {
            run(call, found)
        }
        _ => execute_checked(call, found),
    }
}

/// Handles requests that are not plain: of clients with limited permissions, in transactions, with
/// suppressed replies, of containers, and invalid ones.
#[cold]
#[inline(never)]
fn execute_checked(call: &mut Call<'_>, found: Option<Found>) -> Result {
    let start = call.out.len();
    if call.client.state.reply_mode == ReplyMode::SkipNext {
        call.client.state.reply_mode = ReplyMode::Skip;
    }
    let result = match admit(call, found) {
        Ok(Some(found)) => run(call, found),
        Ok(None) => Ok(()),
        Err(Failure::Full) => Err(Failure::Full),
        Err(Failure::Reply(text)) => {
            refuse(call, found, &text);
            Ok(())
        }
    };
    match call.client.state.reply_mode {
        ReplyMode::On => {}
        ReplyMode::SkipNext | ReplyMode::Off => call.truncate_output(start),
        // The request got no reply yet, so the reply of the next attempt must be skipped.
        ReplyMode::Skip if result.is_err() => call.client.state.reply_mode = ReplyMode::SkipNext,
        ReplyMode::Skip => {
            call.truncate_output(start);
            call.client.state.reply_mode = ReplyMode::On;
        }
    }
    result
}

/// Replies to a request that found no memory, unless the client suppresses replies. In a
/// transaction, `EXEC` will be refused.
#[cold]
pub(crate) fn refuse_for_memory(call: &mut Call<'_>, found: Option<Found>) {
    let start = call.out.len();
    if !memcached::out_of_memory(call, found)
        && let Failure::Reply(text) = OUT_OF_MEMORY
    {
        refuse(call, found, &text);
    }
    if !call.client.takes_reply() {
        call.truncate_output(start);
    }
}

/// Returns the command to run, or `None` if it was queued. As in Redis, an unknown command is
/// reported before missing permissions.
fn admit(call: &mut Call<'_>, found: Option<Found>) -> Result<Option<Found>> {
    let Some(mut found) = found else { return Err(unknown(call)) };
    if found.command.flags.container && call.args.len() > 1 {
        let name = call.args.get(1);
        let Some(part) = find_part(found.command, name) else {
            let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
            let container = found.command.name.to_uppercase();
            let text = format!("ERR unknown subcommand '{name}'. Try {container} HELP.");
            return Err(Failure::Reply(text.into()));
        };
        found = part;
    }
    let command = found.command;
    if !takes(command.arity, call.args.len()) {
        let name = command.name;
        let text = format!("ERR wrong number of arguments for '{name}' command");
        return Err(Failure::Reply(text.into()));
    }
    permit(call, found)?;
    if call.client.state.queues && !command.flags.never_queued {
        if let Some(failure) = refused(call, command) {
            return Err(failure);
        }
        call.client.session.transaction.queue(found, call.args)?;
        call.client.note_queued();
        call.reply().queued();
        return Ok(None);
    }
    Ok(Some(found))
}

impl Client {
    /// Checks the permission for a request of another protocol, which corresponds to this RESP
    /// command over these keys.
    ///
    /// # Errors
    ///
    /// [`Denied`] with what the user may not do.
    pub fn admit<'k>(
        &mut self,
        server: &Server,
        command: &str,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> std::result::Result<(), Denied> {
        if self.may_all() {
            return Ok(());
        }
        let user = self.current_user(server).ok_or(Denied::All)?;
        let found = lookup(command.as_bytes()).ok_or(Denied::Command)?;
        user.permissions.check(found.number, found.command.flags, keys)
    }

    /// Returns whether [`admit`](Self::admit) would admit a request. Changes nothing.
    pub(crate) fn may<'k>(
        &self,
        server: &Server,
        command: &str,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> bool {
        self.may_all()
            || lookup(command.as_bytes()).is_some_and(|found| self.permits(server, found, keys))
    }

    /// Returns whether the user may execute a command with all these keys.
    fn permits<'k>(
        &self,
        server: &Server,
        Found { command, number }: Found,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> bool {
        let user = self.effective_user(server);
        user.is_some_and(|it| it.permissions.check(number, command.flags, keys).is_ok())
    }
}

/// Returns whether the client may execute this command with all its keys. Changes nothing of the
/// client.
pub(crate) fn may_execute(client: &Client, server: &Server, found: Found, args: Args<'_>) -> bool {
    if client.may_all() {
        return true;
    }
    let part = found.command.flags.container.then(|| find_part(found.command, args.get(1)));
    let Some(found) = part.unwrap_or(Some(found)) else { return false };
    client.permits(server, found, args.keys(found.command.keys))
}

/// Checks that the client may execute the command.
fn permit(call: &mut Call<'_>, found: Found) -> Result {
    if call.client.state.trusted {
        return Ok(());
    }
    let denied = |denied: Denied| failure_of(denied, found.command.name);
    match call.client.current_user(call.server) {
        Some(user) => check(&user.permissions, found, call.args).map_err(denied),
        None if found.command.flags.before_auth => Ok(()),
        None => Err(denied(Denied::All)),
    }
}

/// Replies with an error to a command that does not run.
fn refuse(call: &mut Call<'_>, found: Option<Found>, text: &str) {
    let part = found.and_then(|found| find_part(found.command, call.args.get(1)));
    let number = part.or(found).map(|found| found.number);
    call.client.metrics.error(text, number, false);
    if found.is_some_and(|found| found.command.name == "exec") {
        let text = text.strip_prefix("ERR ").unwrap_or(text);
        let text = format!("EXECABORT Transaction discarded because of: {text}");
        call.client.leave_transaction();
        call.reply().error(text.as_bytes());
        return;
    }
    call.client.session.transaction.abort();
    call.reply().error(text.as_bytes());
}

/// Returns the error for an unknown command, which quotes the beginning of its arguments.
fn unknown(call: &Call<'_>) -> Failure {
    const SHOWN: usize = 128;
    let text = |bytes: &[u8], max: usize| {
        // As in C, up to a NUL.
        let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(&bytes[..bytes.len().min(max)]).into_owned()
    };
    let name = text(call.args.get(0), SHOWN);
    let mut args = String::new();
    for arg in call.args.from(1) {
        if args.len() >= SHOWN {
            break;
        }
        args.extend(["'", &text(arg, SHOWN - args.len()), "' "]);
    }
    let text = format!("ERR unknown command '{name}', with args beginning with: {args}");
    Failure::Reply(text.into())
}
