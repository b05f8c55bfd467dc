//! The protocols of memcached, executed by [`commands`].

use super::commands::{self, Call, Next};
use super::{Decoder, Error, KeyRoom, Request as Asked, Step as Found};
use super::{reply, with_value};
use crate::full::Full;
use crate::http_guard::is_http_line;
use crate::log;
use crate::net::connection::Connection;
use crate::net::driver::{Decoders, Decodes, Driver, Stage, Step};
use crate::resp::commands::Session;
use crate::span::Span;
use nuthatch_cache::PendingValue;

pub(crate) struct MemcacheDriver;

/// A request of memcached's, or why there is none.
pub(crate) enum Request<'b> {
    Asked(Asked<'b>),
    /// One whose value is the connection's draft.
    Drafted(Asked<'b>),
    Fault {
        error: Error,
        close: bool,
    },
    /// A line of HTTP in the place of a command.
    Http,
}

impl<T: Decoders<Session = Session> + Decodes<Decoder>> Driver<T> for MemcacheDriver {
    type Request<'b> = Request<'b>;

    #[inline]
    fn next<'b>(
        connection: &mut Connection<T>,
        bytes: &'b [u8],
        _: &mut Vec<Span>,
    ) -> Step<Request<'b>> {
        let Some(decoder) = connection.talk.decoder() else { return Step::More };
        match decoder.next(bytes) {
            Found::Request { request, consumed } if decoder.was_elided() => {
                Step::Request { request: Request::Drafted(request), consumed }
            }
            Found::Request { request, consumed } => {
                Step::Request { request: Request::Asked(request), consumed }
            }
            Found::Error { error: Error::UnknownCommand, consumed, .. }
                if is_http_line(&bytes[..consumed]) =>
            {
                Step::Request { request: Request::Http, consumed }
            }
            Found::Error { error, consumed, close } => {
                Step::Request { request: Request::Fault { error, close }, consumed }
            }
            Found::Skip { consumed } => Step::Skip { consumed },
            Found::More { .. } => Step::More,
        }
    }

    #[inline]
    fn keys(request: &Request<'_>, _: &[Span], each: impl FnMut(&[u8]) -> bool) {
        if let Request::Asked(request) | Request::Drafted(request) = request {
            let mut room = KeyRoom::default();
            commands::keys(request, &mut room).all(each);
        }
    }

    #[inline]
    fn replaces(request: &Request<'_>) -> bool {
        matches!(request, Request::Asked(request) if commands::replaces(request))
    }

    #[inline]
    fn is_exclusive(_: &Request<'_>) -> bool {
        false
    }

    #[inline]
    fn execute(request: &Request<'_>, stage: &mut Stage<'_, T>) -> Result<(), Full> {
        match request {
            Request::Asked(request) => execute(request, stage)?,
            Request::Drafted(request) => execute_drafted(request, stage)?,
            Request::Http => stage.connection.refuse_http(stage.server),
            Request::Fault { error, close } => {
                reply::error(&mut stage.connection.out, *error);
                if *close {
                    log::request_malformed(stage.connection.client.peer(), error);
                    stage.connection.close_after_input();
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn out_of_memory(request: &Request<'_>, stage: &mut Stage<'_, T>) {
        if let Request::Asked(request) | Request::Drafted(request) = request {
            commands::out_of_memory(&mut call(stage), request);
        }
    }
}

#[inline]
fn execute<T: Decoders<Session = Session>>(
    request: &Asked<'_>,
    stage: &mut Stage<'_, T>,
) -> Result<(), Full> {
    let Connection { client, out, .. } = &mut *stage.connection;
    if !client.may_all() && !commands::admit(client, stage.server, request, out) {
        if !stage.connection.trusted {
            stage.connection.note_log_in(stage.server);
        }
        return Ok(());
    }
    let (kind, len) = commands::kind(request);
    let start = stage.connection.out.len();
    stage.connection.client.begin(stage.server, len);
    let next = commands::execute(&mut call(stage), request)?;
    let Connection { client, out, .. } = &*stage.connection;
    client.end(stage.server, (kind, len, out.len() - start), stage.turn.now_ms());
    stage.connection.closing |= next == Next::Close;
    Ok(())
}

#[cold]
fn execute_drafted<T: Decoders<Session = Session>>(
    request: &Asked<'_>,
    stage: &mut Stage<'_, T>,
) -> Result<(), Full> {
    let drafting = std::mem::take(&mut stage.connection.draft);
    if drafting.is_discarded() {
        commands::out_of_memory(&mut call(stage), request);
        return Ok(());
    }
    let value = drafting.get().and_then(PendingValue::value).unwrap_or_default();
    let result = execute(&with_value(*request, value), stage);
    // Where there is no room it is executed once more.
    stage.connection.draft = drafting;
    result
}

#[inline]
fn call<'a, T: Decoders>(stage: &'a mut Stage<'_, T>) -> Call<'a> {
    let Stage { turn, connection, server, memcache, .. } = stage;
    let Connection { client, out, .. } = &mut **connection;
    Call { turn, server, shared: memcache, out, lent: &mut client.lent }
}
