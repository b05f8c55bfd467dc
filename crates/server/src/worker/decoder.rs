//! The decoders of all protocols.

use crate::memcache::reply::server_error;
use crate::mrcache::driver::MrcacheDecoder;
use crate::net::driver::{Decoders, Decodes};
use crate::pmc::driver::PmcDecoder;
use crate::protocol::Protocol;
use crate::resp::commands::Session;
use crate::state::{Server, TooManyClients, ValueLimit, Version};
use crate::{memcache, mrcache, pmc, resp};

/// A connection of a worker.
pub(crate) type Connection = crate::net::connection::Connection<ProtocolDecoder>;

/// The decoder of the protocol of a connection.
#[derive(Clone, Debug)]
pub(crate) enum ProtocolDecoder {
    Resp(resp::Decoder),
    Memcache(memcache::Decoder),
    Pmc(Box<PmcDecoder>),
    Mrcache(MrcacheDecoder),
}

impl Decoders for ProtocolDecoder {
    type Session = Session;

    /// Creates a decoder at the start of a request. If the client is not trusted, it must log in
    /// first, and the limits allow no more than a login needs.
    fn new(protocol: Protocol, server: &Server, trusted: bool) -> Self {
        match protocol {
            Protocol::Resp => Self::Resp(resp::Decoder::new(resp_limits(server, trusted))),
            Protocol::Memcache => {
                Self::Memcache(memcache::Decoder::new(memcache_limits(server, trusted)))
            }
            Protocol::Pmc => Self::Pmc(Box::new(PmcDecoder {
                messages: pmc_messages(server, trusted),
                resp: resp::Decoder::new(resp_limits(server, trusted)),
            })),
            Protocol::Mrcache(framing) => {
                let decoder = mrcache::Decoder::new(mrcache_limits(server, trusted));
                Self::Mrcache(MrcacheDecoder { framing, decoder })
            }
        }
    }

    fn protocol(&self) -> Protocol {
        match self {
            Self::Resp(_) => Protocol::Resp,
            Self::Memcache(_) => Protocol::Memcache,
            Self::Pmc(_) => Protocol::Pmc,
            Self::Mrcache(decoder) => Protocol::Mrcache(decoder.framing),
        }
    }

    /// Returns the offset and length of the value that an incomplete request is still waiting for.
    #[inline]
    fn pending_value(&self) -> Option<(usize, usize)> {
        match self {
            Self::Resp(decoder) => decoder.pending_value(),
            Self::Memcache(decoder) => decoder.pending_value(),
            Self::Pmc(_) | Self::Mrcache(_) => None,
        }
    }

    /// Continues without the bytes of that value.
    fn elide(&mut self) {
        match self {
            Self::Resp(decoder) => decoder.elide(),
            Self::Memcache(decoder) => decoder.elide(),
            Self::Pmc(_) | Self::Mrcache(_) => {}
        }
    }

    /// Raises the limits after login.
    fn trust(&mut self, server: &Server) {
        match self {
            Self::Resp(decoder) => decoder.set_limits(resp_limits(server, true)),
            Self::Pmc(decoder) => {
                decoder.messages = pmc_messages(server, true);
                decoder.resp.set_limits(resp_limits(server, true));
            }
            Self::Memcache(decoder) => {
                *decoder = memcache::Decoder::new(memcache_limits(server, true));
            }
            Self::Mrcache(decoder) => {
                decoder.decoder = mrcache::Decoder::new(mrcache_limits(server, true));
            }
        }
    }

    /// Returns the bytes of memory that the decoder keeps for an incomplete request.
    #[inline]
    fn held_len(&self) -> usize {
        match self {
            Self::Resp(decoder) => decoder.held_len(),
            Self::Pmc(decoder) => size_of::<PmcDecoder>() + decoder.resp.held_len(),
            Self::Memcache(_) | Self::Mrcache(_) => 0,
        }
    }

    fn reply_error(&self, out: &mut Vec<u8>, version: Version, text: &str) {
        match self {
            Self::Resp(_) => resp::Reply::new(out, version).error(text.as_bytes()),
            Self::Memcache(_) if text == TooManyClients::TEXT => {
                out.extend_from_slice(b"ERROR Too many open connections\r\n");
            }
            Self::Memcache(_) => server_error(out, text.strip_prefix("ERR ").unwrap_or(text)),
            Self::Pmc(_) => pmc::Reply::new(out).error(text),
            Self::Mrcache(_) => {}
        }
    }
}

impl Decodes<resp::Decoder> for ProtocolDecoder {
    #[inline]
    fn decoder(&mut self) -> Option<&mut resp::Decoder> {
        if let Self::Resp(decoder) = self { Some(decoder) } else { None }
    }
}

impl Decodes<memcache::Decoder> for ProtocolDecoder {
    #[inline]
    fn decoder(&mut self) -> Option<&mut memcache::Decoder> {
        if let Self::Memcache(decoder) = self { Some(decoder) } else { None }
    }
}

impl Decodes<PmcDecoder> for ProtocolDecoder {
    #[inline]
    fn decoder(&mut self) -> Option<&mut PmcDecoder> {
        if let Self::Pmc(decoder) = self { Some(decoder) } else { None }
    }
}

impl Decodes<MrcacheDecoder> for ProtocolDecoder {
    #[inline]
    fn decoder(&mut self) -> Option<&mut MrcacheDecoder> {
        if let Self::Mrcache(decoder) = self { Some(decoder) } else { None }
    }
}

/// Maximum bytes of a message of poor-man's-cache, and of a key and of a value of mrcache, before
/// login, which is `AUTH` of RESP.
const LEN_BEFORE_AUTH: usize = 4 << 10;

/// Maximum bytes of a message of poor-man's-cache without its value.
const MAX_KEY_AND_VERB_LEN: usize = nuthatch_cache::Cache::MAX_KEY_LEN + 5;

fn pmc_messages(server: &Server, trusted: bool) -> pmc::Decoder {
    let (len, limit) = if trusted {
        let (value_len, limit) = server.gathered_limit();
        (value_len + MAX_KEY_AND_VERB_LEN, limit)
    } else {
        (LEN_BEFORE_AUTH, ValueLimit::BeforeLogin)
    };
    pmc::Decoder::new(u32::try_from(len).unwrap_or(u32::MAX)).limited_by(limit)
}

fn mrcache_limits(server: &Server, trusted: bool) -> mrcache::Limits {
    let (value_len, _) = server.gathered_limit();
    let limits = mrcache::Limits { value_len, ..mrcache::Limits::default() };
    if trusted { limits } else { limits.at_most(LEN_BEFORE_AUTH) }
}

fn memcache_limits(server: &Server, trusted: bool) -> memcache::Limits {
    let limits = memcache::Limits { object_len: server.max_value_len(), ..Default::default() };
    if trusted { limits } else { limits.before_auth() }
}

fn resp_limits(server: &Server, trusted: bool) -> resp::Limits {
    let (bulk_len, bulk_limit) = server.value_limit();
    let bulk_len = u32::try_from(bulk_len).unwrap_or(u32::MAX);
    let limits = resp::Limits { bulk_len, bulk_limit, ..resp::Limits::default() };
    if trusted { limits } else { limits.before_auth() }
}
