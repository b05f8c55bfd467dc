//! Connects the messages of poor-man's-cache to [`commands`]. Each message may be a RESP request
//! instead.

use super::Span;
use super::commands;
use super::{Decoder, Reply, Request as Parsed, Step as DecodeStep, TooLong};
use crate::full::Full;
use crate::http_guard::{has_http_line, is_http_line};
use crate::log;
use crate::net::connection::Connection;
use crate::net::driver::{Context, Decoders, Decodes, Driver, Step};
use crate::resp;
use crate::resp::commands::Session;
use crate::resp::driver::Request as RespRequest;
use crate::resp::driver::RespDriver;
use crate::state::Server;

pub(crate) struct PmcDriver;

/// A decoder of both kinds of messages.
#[derive(Clone, Debug)]
pub(crate) struct PmcDecoder {
    pub(crate) messages: Decoder,
    pub(crate) resp: resp::Decoder,
}

/// A message.
pub(crate) enum Request<'b> {
    Message {
        bytes: &'b [u8],
        parsed: Parsed,
    },
    Resp(RespRequest<'b>),
    Fault(TooLong),
    /// An HTTP request.
    Http,
}

/// The length of the prefix that identifies an incomplete message as HTTP.
const LINE_START_LEN: usize = 16;

/// Returns whether a message is an HTTP request. A value may contain any lines, so `SET` is not
/// checked.
#[inline]
fn is_http(message: &[u8], parsed: Parsed) -> bool {
    match parsed {
        Parsed::Set { .. } => false,
        Parsed::Fault(_) => has_http_line(message),
        // The commands ignore the bytes after the key. Most messages have none.
        Parsed::Get { key } | Parsed::Del { key } => {
            let end = key.start as usize + key.len as usize;
            message.len() > end + 1 && has_http_line(&message[end..])
        }
    }
}

impl<T: Decoders<Session = Session> + Decodes<PmcDecoder> + Decodes<resp::Decoder>> Driver<T>
    for PmcDriver
{
    type Request<'b> = Request<'b>;

    #[inline]
    fn next<'b>(
        connection: &mut Connection<T>,
        bytes: &'b [u8],
        spans: &mut Vec<Span>,
    ) -> Step<Request<'b>> {
        let decoder: Option<&mut PmcDecoder> = connection.decoder.decoder();
        let Some(decoder) = decoder else { return Step::More };
        match decoder.messages.next(bytes) {
            Ok(DecodeStep::Request { request: parsed, consumed }) => {
                let bytes = &bytes[..consumed];
                if is_http(bytes, parsed) {
                    return Step::Request { request: Request::Http, consumed };
                }
                Step::Request { request: Request::Message { bytes, parsed }, consumed }
            }
            Ok(DecodeStep::Empty { consumed }) => Step::Skip { consumed },
            Ok(DecodeStep::Resp) => match RespRequest::next(&mut decoder.resp, bytes, spans) {
                Step::Request { request, consumed } => {
                    Step::Request { request: Request::Resp(request), consumed }
                }
                Step::Skip { consumed } => Step::Skip { consumed },
                Step::More => Step::More,
            },
            // There is no separator before the body, which may be long.
            Ok(DecodeStep::More) if is_http_line(&bytes[..bytes.len().min(LINE_START_LEN)]) => {
                Step::Request { request: Request::Http, consumed: bytes.len() }
            }
            Ok(DecodeStep::More) => Step::More,
            Err(fault) => Step::Request { request: Request::Fault(fault), consumed: bytes.len() },
        }
    }

    #[inline]
    fn keys(request: &Request<'_>, spans: &[Span], mut each: impl FnMut(&[u8]) -> bool) {
        match request {
            Request::Message { bytes, parsed } => {
                if let Some(key) = commands::key(bytes, *parsed) {
                    each(key);
                }
            }
            Request::Resp(request) => <RespDriver as Driver<T>>::keys(request, spans, each),
            Request::Fault(_) | Request::Http => {}
        }
    }

    fn all_keys(
        request: &Request<'_>,
        connection: &Connection<T>,
        spans: &[Span],
        mut each: impl FnMut(&[u8]),
    ) {
        if let Request::Resp(request) = request {
            return <RespDriver as Driver<T>>::all_keys(request, connection, spans, each);
        }
        <Self as Driver<T>>::keys(request, spans, |key| {
            each(key);
            true
        });
    }

    #[cold]
    fn is_permitted(
        request: &Request<'_>,
        connection: &Connection<T>,
        server: &Server,
        spans: &[Span],
    ) -> bool {
        match request {
            Request::Message { bytes, parsed } => {
                commands::may_execute(&connection.client, server, (bytes, *parsed))
            }
            Request::Resp(request) => {
                <RespDriver as Driver<T>>::is_permitted(request, connection, server, spans)
            }
            Request::Fault(_) | Request::Http => false,
        }
    }

    #[inline]
    fn replaces(request: &Request<'_>) -> bool {
        let Request::Resp(request) = request else { return false };
        <RespDriver as Driver<T>>::replaces(request)
    }

    #[inline]
    fn changes_several(request: &Request<'_>) -> bool {
        let Request::Resp(request) = request else { return false };
        <RespDriver as Driver<T>>::changes_several(request)
    }

    #[inline]
    fn is_exclusive(request: &Request<'_>) -> bool {
        let Request::Resp(request) = request else { return false };
        <RespDriver as Driver<T>>::is_exclusive(request)
    }

    #[inline]
    fn execute(request: &Request<'_>, context: &mut Context<'_, T>) -> Result<(), Full> {
        match request {
            Request::Message { bytes, parsed } => {
                let Connection { client, out, .. } = &mut *context.connection;
                if !client.may_all() {
                    if !commands::admit(client, context.server, (bytes, *parsed), out) {
                        return Ok(());
                    }
                    context.connection.note_admitted(context.server);
                }
                let Connection { client, out, .. } = &mut *context.connection;
                let start = out.len();
                client.begin(context.server, bytes.len());
                let place = (context.guard, context.server);
                let answer = (&mut *out, &mut client.zero_copy);
                commands::execute(place, bytes, *parsed, answer)?;
                let lens = (commands::kind(*parsed), bytes.len(), out.len() - start);
                client.end(context.server, lens, context.guard.now_ms());
                Ok(())
            }
            Request::Resp(request) => <RespDriver as Driver<T>>::execute(request, context),
            Request::Http => {
                context.connection.refuse_http(context.server);
                Ok(())
            }
            Request::Fault(fault) => {
                log::request_malformed(context.connection.client.peer(), fault);
                Reply::new(&mut context.connection.out).error(&fault.to_string());
                context.connection.close_after_input();
                Ok(())
            }
        }
    }

    #[cold]
    fn out_of_memory(request: &Request<'_>, context: &mut Context<'_, T>) {
        match request {
            Request::Message { bytes, parsed } => {
                commands::out_of_memory(context.guard, bytes, *parsed, &mut context.connection.out);
            }
            Request::Resp(request) => <RespDriver as Driver<T>>::out_of_memory(request, context),
            Request::Fault(_) | Request::Http => {}
        }
    }
}
