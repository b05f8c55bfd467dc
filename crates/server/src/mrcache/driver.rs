//! Connects the mrcache protocol to [`commands`].

use super::commands;
use super::{Decoder, Error, Framing, Request as Parsed, Step as DecodeStep};
use crate::full::Full;
use crate::http_guard::begins_like_http;
use crate::log;
use crate::net::connection::Connection;
use crate::net::driver::{Context, Decoders, Decodes, Driver, Step};
use crate::resp::commands::Session;
use crate::span::Span;
use crate::state::{Server, ValueLimit};

pub(crate) struct MrcacheDriver;

/// A decoder that knows the framing of replies.
#[derive(Clone, Debug)]
pub(crate) struct MrcacheDecoder {
    pub(crate) framing: Framing,
    pub(crate) decoder: Decoder,
}

/// A decoded request, or the reason to close the connection: the protocol has no error reply.
pub(crate) type Request<'b> = Result<(Framing, Parsed<'b>), Refused>;

/// Why bytes are not a request.
pub(crate) enum Refused {
    Malformed(Error),
    /// An HTTP request: its second byte is not an operation.
    Http,
}

impl<T: Decoders<Session = Session> + Decodes<MrcacheDecoder>> Driver<T> for MrcacheDriver {
    type Request<'b> = Request<'b>;

    #[inline]
    fn next<'b>(
        connection: &mut Connection<T>,
        bytes: &'b [u8],
        _: &mut Vec<Span>,
    ) -> Step<Request<'b>> {
        let Some(MrcacheDecoder { framing, decoder }) = connection.decoder.decoder() else {
            return Step::More;
        };
        match decoder.next(bytes) {
            DecodeStep::Request { request, consumed } => {
                Step::Request { request: Ok((*framing, request)), consumed }
            }
            DecodeStep::Error { error } => {
                let is_http = begins_like_http(bytes);
                let refused = if is_http { Refused::Http } else { Refused::Malformed(error) };
                Step::Request { request: Err(refused), consumed: bytes.len() }
            }
            DecodeStep::More { .. } => Step::More,
        }
    }

    #[inline]
    fn keys(request: &Request<'_>, _: &[Span], mut each: impl FnMut(&[u8]) -> bool) {
        if let Some(key) = request.as_ref().ok().and_then(|(_, parsed)| commands::key(parsed)) {
            each(key);
        }
    }

    #[cold]
    fn is_permitted(
        request: &Request<'_>,
        connection: &Connection<T>,
        server: &Server,
        _: &[Span],
    ) -> bool {
        let Ok((_, parsed)) = request else { return false };
        let keys = commands::key(parsed).into_iter();
        connection.client.may(server, commands::command(parsed), keys)
    }

    #[inline]
    fn replaces(request: &Request<'_>) -> bool {
        matches!(request, Ok((_, Parsed::Set { .. })))
    }

    #[inline]
    fn is_exclusive(_: &Request<'_>) -> bool {
        false
    }

    #[inline]
    fn execute(request: &Request<'_>, context: &mut Context<'_, T>) -> Result<(), Full> {
        let (framing, parsed) = match request {
            Ok(request) => request,
            Err(Refused::Http) => {
                context.connection.refuse_http(context.server);
                return Ok(());
            }
            Err(Refused::Malformed(error)) => {
                let peer = context.connection.client.peer();
                if let Error::ValueTooLong { .. } = error {
                    // The client gets no error, so the limit is logged.
                    let limit = if context.connection.trusted {
                        context.server.gathered_limit().1
                    } else {
                        ValueLimit::BeforeLogin
                    };
                    log::value_refused(peer, error, &limit);
                } else {
                    log::request_malformed(peer, error);
                }
                context.connection.state.close();
                return Ok(());
            }
        };
        let client = &mut context.connection.client;
        if !client.may_all() {
            let keys = commands::key(parsed).into_iter();
            let denied = client.admit(context.server, commands::command(parsed), keys);
            if denied.is_err() {
                // There is no reply for it, and a miss would be wrong.
                context.connection.state.close();
                return Ok(());
            }
            context.connection.note_admitted(context.server);
        }
        if commands::writes(parsed)
            && let Some(snapshots) = &context.server.snapshots
            && let Some(text) = commands::key(parsed).and_then(|key| snapshots.refuse_write(key))
        {
            // There is no reply for it, and the client would take the write for done.
            log::snapshot_write_refused(context.connection.client.peer(), &text);
            context.connection.state.close();
            return Ok(());
        }
        let (kind, len) = commands::kind(parsed);
        let Connection { client, out, .. } = &mut *context.connection;
        let start = out.len();
        client.begin(context.server, len);
        let place = (context.guard, context.server);
        commands::execute(place, *framing, parsed, (&mut *out, &mut client.zero_copy))?;
        client.end(context.server, (kind, len, out.len() - start), context.guard.now_ms());
        Ok(())
    }

    #[cold]
    fn out_of_memory(request: &Request<'_>, context: &mut Context<'_, T>) {
        if let Ok((_, parsed)) = request {
            commands::out_of_memory(context.guard, parsed);
        }
    }
}
