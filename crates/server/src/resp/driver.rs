//! Connects RESP to [`commands`](super::commands).

use super::commands::{
    Args, Call, Failure, Found, Session, execute_found, forward, lookup, may_execute,
    refuse_for_memory,
};
use super::{Decoder, Inline, ProtocolError, Reply};
use crate::cluster::Forward;
use crate::full::Full;
use crate::http_guard::is_http_word;
use crate::log;
use crate::net::connection::Connection;
use crate::net::driver::{Context, Decoders, Decodes, Driver, Known, Step};
use crate::net::pending_value::InPlace;
use crate::resp;
use crate::span::Span;
use crate::state::{Keys, Server};
use std::ops::Range;

pub(crate) struct RespDriver;

/// A decoded request with its command, or an error that is replied in its place.
pub(crate) enum Request<'b> {
    /// A request whose arguments borrow from its bytes.
    Framed {
        bytes: &'b [u8],
        spans: Range<u32>,
        found: Option<Found>,
    },
    Inline(Box<Inline>, Option<Found>),
    Fault(ProtocolError),
    /// A line of HTTP instead of a command.
    Http,
}

impl Request<'_> {
    /// Decodes the next request.
    #[inline(always)]
    pub(crate) fn next<'b>(
        decoder: &mut Decoder,
        bytes: &'b [u8],
        spans: &mut Vec<Span>,
    ) -> Step<Request<'b>> {
        let first = spans.len();
        match decoder.next(bytes, spans) {
            Ok(resp::Step::Request { consumed }) => {
                let bytes = &bytes[..consumed];
                let name = Args::new(bytes, &spans[first..]).get(0);
                let found = lookup(name);
                if found.is_none() && is_http_word(name) {
                    return Step::Request { request: Request::Http, consumed };
                }
                let spans = first as u32..spans.len() as u32;
                Step::Request { request: Request::Framed { bytes, spans, found }, consumed }
            }
            Ok(resp::Step::Inline { consumed, line }) => {
                let name = Args::new(&line.bytes, &line.args).get(0);
                let found = lookup(name);
                if found.is_none() && is_http_word(name) {
                    return Step::Request { request: Request::Http, consumed };
                }
                Step::Request { request: Request::Inline(line, found), consumed }
            }
            Ok(resp::Step::Empty { consumed }) => Step::Skip { consumed },
            Ok(resp::Step::More { .. }) => Step::More,
            Err(fault) => Step::Request { request: Request::Fault(fault), consumed: bytes.len() },
        }
    }

    /// Returns the arguments and the command.
    #[inline]
    fn parts<'a>(&'a self, spans: &'a [Span]) -> Option<(Args<'a>, Option<Found>)> {
        match self {
            Self::Framed { bytes, spans: range, found } => {
                let spans = &spans[range.start as usize..range.end as usize];
                Some((Args::new(bytes, spans), *found))
            }
            Self::Inline(line, found) => Some((Args::new(&line.bytes, &line.args), *found)),
            Self::Fault(_) | Self::Http => None,
        }
    }
}

impl<T: Decoders<Session = Session> + Decodes<Decoder>> Driver<T> for RespDriver {
    type Request<'b> = Request<'b>;

    #[inline(always)]
    fn next<'b>(
        connection: &mut Connection<T>,
        bytes: &'b [u8],
        spans: &mut Vec<Span>,
    ) -> Step<Request<'b>> {
        match connection.decoder.decoder() {
            Some(decoder) => Request::next(decoder, bytes, spans),
            None => Step::More,
        }
    }

    #[inline]
    fn keys(request: &Request<'_>, spans: &[Span], mut each: impl FnMut(&[u8]) -> bool) {
        let Some((args, Some(found))) = request.parts(spans) else { return };
        if let Some(key) = args.only_key(found.command.keys) {
            each(key);
        } else {
            args.keys(found.command.keys).all(each);
        }
    }

    fn all_keys(
        request: &Request<'_>,
        connection: &Connection<T>,
        spans: &[Span],
        mut each: impl FnMut(&[u8]),
    ) {
        let Some((args, Some(found))) = request.parts(spans) else { return };
        args.keys(found.command.keys).for_each(&mut each);
        if found.command.name == "exec" {
            connection.client.session.transaction.for_each_key(each);
        }
    }

    #[cold]
    fn is_permitted(
        request: &Request<'_>,
        connection: &Connection<T>,
        server: &Server,
        spans: &[Span],
    ) -> bool {
        let Some((args, Some(found))) = request.parts(spans) else { return false };
        may_execute(&connection.client, server, found, args)
    }

    #[inline]
    fn replaces(request: &Request<'_>) -> bool {
        let (Request::Framed { found, .. } | Request::Inline(_, found)) = request else {
            return false;
        };
        found.is_some_and(|found| found.command.flags.writes)
    }

    #[inline]
    fn changes_several(request: &Request<'_>) -> bool {
        let (found, args) = match request {
            Request::Framed { found: Some(found), spans, .. } => (found, spans.len()),
            Request::Inline(line, Some(found)) => (found, line.args.len()),
            _ => return false,
        };
        let command = found.command;
        // The name, and one key.
        let has_one_key = command.keys == Keys::ONE || args == 2;
        command.flags.exclusive || command.flags.writes && !has_one_key
    }

    #[inline]
    fn is_exclusive(request: &Request<'_>) -> bool {
        let (Request::Framed { found, .. } | Request::Inline(_, found)) = request else {
            return false;
        };
        found.is_some_and(|found| found.command.flags.exclusive)
    }

    #[inline]
    fn execute(request: &Request<'_>, context: &mut Context<'_, T>) -> Result<(), Full> {
        let Context { guard, connection, server, spans, known, .. } = context;
        let Some((args, found)) = request.parts(spans) else {
            if let Request::Http = request {
                connection.refuse_http(server);
            } else if let Request::Fault(fault) = request {
                log::request_malformed(connection.client.peer(), fault);
                let Connection { client, out, .. } = &mut **connection;
                Reply::new(out, client.version).error(fault.to_string().as_bytes());
                connection.close_after_input();
            }
            return Ok(());
        };
        if connection.in_place.is_discarded() {
            Self::out_of_memory(request, context);
            // Later requests have nothing to do with the value.
            context.connection.in_place = InPlace::None;
            return Ok(());
        }
        let Connection { client, out, in_place, .. } = &mut **connection;
        let args = args.with_pending_value(in_place.get());
        let Known { admission, prefetched } = *known;
        let mut call = Call { guard, client, server, args, out, admission, prefetched };
        if execute_found(&mut call, found) == Err(Failure::Full) {
            return Err(Full);
        }
        if !connection.trusted {
            connection.update_login(server);
        }
        if connection.client.closing {
            connection.state.close();
        }
        Ok(())
    }

    #[cold]
    fn forward(
        request: &Request<'_>,
        connection: &Connection<T>,
        server: &Server,
        spans: &[Span],
        _: &[u8],
    ) -> Option<Forward> {
        let (args, found) = request.parts(spans)?;
        let args = args.with_pending_value(connection.in_place.get());
        Some(forward(server, found?, args, connection.client.version))
    }

    #[cold]
    fn out_of_memory(request: &Request<'_>, context: &mut Context<'_, T>) {
        let Context { guard, connection, server, spans, known, .. } = context;
        if let Some((args, found)) = request.parts(spans) {
            let Connection { client, out, .. } = &mut **connection;
            let Known { admission, prefetched } = *known;
            let mut call = Call { guard, client, server, args, out, admission, prefetched };
            refuse_for_memory(&mut call, found);
        }
    }
}
