//! Connects the memcached protocols to [`commands`].

use super::commands::{self, Call, Next};
use super::{Decoder, Error, KeyBuffer, Request as Parsed, Step as DecodeStep};
use super::{reply, with_value};
use crate::cluster::{Admission, Cluster, Forward, Refusal};
use crate::full::Full;
use crate::http_guard::is_http_line;
use crate::log;
use crate::net::connection::Connection;
use crate::net::driver::{Context, Decoders, Decodes, Driver, Step};
use crate::resp::commands::Session;
use crate::span::Span;
use crate::state::{ClusterWait, Server};
use nuthatch_cache::PendingValue;

pub(crate) struct MemcacheDriver;

/// A decoded request, or an error that is replied in its place.
pub(crate) enum Request<'b> {
    Parsed(Parsed<'b>),
    /// A request whose value was received in place.
    InPlace(Parsed<'b>),
    Fault {
        error: Error,
        close: bool,
    },
    /// A line of HTTP instead of a command.
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
        let Some(decoder) = connection.decoder.decoder() else { return Step::More };
        match decoder.next(bytes) {
            DecodeStep::Request { request, consumed } if decoder.was_elided() => {
                Step::Request { request: Request::InPlace(request), consumed }
            }
            DecodeStep::Request { request, consumed } => {
                Step::Request { request: Request::Parsed(request), consumed }
            }
            DecodeStep::Error { error: Error::UnknownCommand, consumed, .. }
                if is_http_line(&bytes[..consumed]) =>
            {
                Step::Request { request: Request::Http, consumed }
            }
            DecodeStep::Error { error, consumed, close } => {
                Step::Request { request: Request::Fault { error, close }, consumed }
            }
            DecodeStep::Skip { consumed } => Step::Skip { consumed },
            DecodeStep::More { .. } => Step::More,
        }
    }

    #[inline]
    fn keys(request: &Request<'_>, _: &[Span], each: impl FnMut(&[u8]) -> bool) {
        if let Request::Parsed(request) | Request::InPlace(request) = request {
            let mut room = KeyBuffer::default();
            commands::keys(request, &mut room).all(each);
        }
    }

    #[cold]
    fn is_permitted(
        request: &Request<'_>,
        connection: &Connection<T>,
        server: &Server,
        _: &[Span],
    ) -> bool {
        let (Request::Parsed(request) | Request::InPlace(request)) = request else { return false };
        commands::may_execute(&connection.client, server, request)
    }

    #[inline]
    fn replaces(request: &Request<'_>) -> bool {
        matches!(request, Request::Parsed(request) if commands::replaces(request))
    }

    #[inline]
    fn is_exclusive(_: &Request<'_>) -> bool {
        false
    }

    #[inline]
    fn execute(request: &Request<'_>, context: &mut Context<'_, T>) -> Result<(), Full> {
        match request {
            Request::Parsed(request) => execute(request, context)?,
            Request::InPlace(request) => execute_in_place(request, context)?,
            Request::Http => context.connection.refuse_http(context.server),
            Request::Fault { error, close } => {
                reply::error(&mut context.connection.out, *error);
                if *close {
                    log::request_malformed(context.connection.client.peer(), error);
                    context.connection.close_after_input();
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn forward(
        request: &Request<'_>,
        connection: &Connection<T>,
        _: &Server,
        _: &[Span],
        bytes: &[u8],
    ) -> Option<Forward> {
        match request {
            Request::Parsed(request) => Some(commands::forward(request, bytes)),
            Request::InPlace(request) => {
                let value = connection.in_place.get().and_then(PendingValue::value);
                let request = with_value(*request, value.unwrap_or_default());
                Some(commands::forward(&request, bytes))
            }
            Request::Fault { .. } | Request::Http => None,
        }
    }

    #[cold]
    fn out_of_memory(request: &Request<'_>, context: &mut Context<'_, T>) {
        if let Request::Parsed(request) | Request::InPlace(request) = request {
            commands::out_of_memory(&mut call(context), request);
        }
    }
}

#[inline]
fn execute<T: Decoders<Session = Session>>(
    request: &Parsed<'_>,
    context: &mut Context<'_, T>,
) -> Result<(), Full> {
    let Connection { client, out, .. } = &mut *context.connection;
    if !client.may_all() && !commands::admit(client, context.server, request, out) {
        if !context.connection.trusted {
            context.connection.update_login(context.server);
        }
        return Ok(());
    }
    if let Some(cluster) = &context.server.cluster
        && let Some(result) = refuse(request, context, cluster)
    {
        return result;
    }
    let (kind, len) = commands::kind(request);
    let start = context.connection.out.len();
    context.connection.client.begin(context.server, len);
    let next = commands::execute(&mut call(context), request)?;
    let Connection { client, out, .. } = &*context.connection;
    client.end(context.server, (kind, len, out.len() - start), context.guard.now_ms());
    if next == Next::Close {
        context.connection.state.close();
    }
    Ok(())
}

/// Lets a request wait that this node of a cluster does not execute now, or replies with an error.
/// Returns `None` if the node executes it.
#[inline]
fn refuse<T: Decoders>(
    request: &Parsed<'_>,
    context: &mut Context<'_, T>,
    cluster: &Cluster,
) -> Option<Result<(), Full>> {
    let client = &context.connection.client;
    if let Parsed::TooLarge(_) = request
        && client.cluster_wait.take() == ClusterWait::Ended
    {
        return None;
    }
    let is_permitted = match context.known.admission {
        Admission::Checked => return None,
        admission => admission == Admission::Permitted,
    };
    let refusal = if let Parsed::FlushAll { .. } = request {
        // All nodes execute it. A node without a permit does not know all.
        (!is_permitted).then_some(Refusal::Down)
    } else {
        Some(commands::refuse(cluster, context.server, is_permitted, request)?)
    };
    let wait = match refusal {
        None | Some(Refusal::Moved(..) | Refusal::NotServed) => ClusterWait::Owner,
        Some(Refusal::Waits) => ClusterWait::Slot,
        Some(refusal) => {
            client.metrics.error(&refusal.text(), None, false);
            if !commands::noreply(request) {
                reply::server_error(&mut context.connection.out, &refusal.text());
            }
            return Some(Ok(()));
        }
    };
    client.cluster_wait.set(wait);
    Some(Err(Full))
}

#[cold]
fn execute_in_place<T: Decoders<Session = Session>>(
    request: &Parsed<'_>,
    context: &mut Context<'_, T>,
) -> Result<(), Full> {
    let in_place = std::mem::take(&mut context.connection.in_place);
    if in_place.is_discarded() {
        commands::out_of_memory(&mut call(context), request);
        return Ok(());
    }
    let value = in_place.get().and_then(PendingValue::value).unwrap_or_default();
    let result = execute(&with_value(*request, value), context);
    // Kept for the next attempt, if there was no memory.
    context.connection.in_place = in_place;
    result
}

#[inline]
fn call<'a, T: Decoders>(context: &'a mut Context<'_, T>) -> Call<'a> {
    let Context { guard, connection, server, memcache, known, .. } = context;
    let Connection { client, out, .. } = &mut **connection;
    let (zero_copy, prefetched) = (&mut client.zero_copy, known.prefetched);
    Call { guard, server, shared: memcache, out, zero_copy, prefetched }
}
