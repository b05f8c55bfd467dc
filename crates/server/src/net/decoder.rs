//! Which protocol a connection speaks, and what is known of a request that is not whole.

use super::listener::Protocol;
use crate::mrcache::Framing;
use crate::pmc::driver::PmcDecoder;
use crate::resp::ValueLimit;
use crate::state::Server;
use crate::{memcache, mrcache, pmc, resp};

/// Which protocol a connection speaks, with what finds its requests.
#[derive(Clone, Debug)]
pub(crate) enum Talk {
    Resp(resp::Decoder),
    Memcache(memcache::Decoder),
    Pmc(Box<PmcDecoder>),
    Mrcache(Framing, mrcache::Decoder),
}

impl Talk {
    /// At the start of a request. A client that is not trusted must log in first, and may send no
    /// more than that takes.
    pub(crate) fn new(protocol: Protocol, server: &Server, trusted: bool) -> Self {
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
                Self::Mrcache(framing, mrcache::Decoder::new(mrcache_limits(server, trusted)))
            }
        }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::Resp(_) => Protocol::Resp,
            Self::Memcache(_) => Protocol::Memcache,
            Self::Pmc(_) => Protocol::Pmc,
            Self::Mrcache(framing, _) => Protocol::Mrcache(*framing),
        }
    }

    /// The value of which bytes are missing, where that is what a request misses that is not whole:
    /// where it starts, and its length. Of protocols that announce it and can do without its bytes.
    #[inline]
    pub(crate) fn awaits(&self) -> Option<(usize, usize)> {
        match self {
            Self::Resp(decoder) => decoder.awaits(),
            Self::Memcache(decoder) => decoder.awaits(),
            Self::Pmc(_) | Self::Mrcache(..) => None,
        }
    }

    /// That value is received elsewhere.
    pub(crate) fn elide(&mut self) {
        match self {
            Self::Resp(decoder) => decoder.elide(),
            Self::Memcache(decoder) => decoder.elide(),
            Self::Pmc(_) | Self::Mrcache(..) => {}
        }
    }

    /// The client has logged in: its requests may be long from here on.
    pub(crate) fn trust(&mut self, server: &Server) {
        match self {
            Self::Resp(decoder) => decoder.set_limits(resp_limits(server, true)),
            Self::Pmc(decoder) => {
                decoder.messages = pmc_messages(server, true);
                decoder.resp.set_limits(resp_limits(server, true));
            }
            Self::Memcache(decoder) => {
                *decoder = memcache::Decoder::new(memcache_limits(server, true));
            }
            Self::Mrcache(_, decoder) => {
                *decoder = mrcache::Decoder::new(mrcache_limits(server, true));
            }
        }
    }

    /// Returns the bytes of memory that the decoder keeps for an incomplete request.
    #[inline]
    pub(crate) fn held_len(&self) -> usize {
        match self {
            Self::Resp(decoder) => decoder.held_len(),
            Self::Pmc(decoder) => size_of::<PmcDecoder>() + decoder.resp.held_len(),
            Self::Memcache(_) | Self::Mrcache(..) => 0,
        }
    }
}

/// Maximum bytes of a message of poor-man's-cache, and of a key and of a value of mrcache, before
/// the client has logged in. Only `AUTH` of RESP logs in.
const LEN_BEFORE_AUTH: usize = 4 << 10;

/// Of a message of poor-man's-cache, all but the value, at most.
const KEY_AND_VERB_MOST: usize = nuthatch_cache::Cache::MAX_KEY_LEN + 5;

fn pmc_messages(server: &Server, trusted: bool) -> pmc::Decoder {
    let (len, limit) = if trusted {
        let (value_len, limit) = server.gathered_limit();
        (value_len + KEY_AND_VERB_MOST, limit)
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
    let limits = memcache::Limits { object_len: server.value_most(), ..Default::default() };
    if trusted { limits } else { limits.before_auth() }
}

fn resp_limits(server: &Server, trusted: bool) -> resp::Limits {
    let (bulk_len, bulk_limit) = server.value_limit();
    let bulk_len = u32::try_from(bulk_len).unwrap_or(u32::MAX);
    let limits = resp::Limits { bulk_len, bulk_limit, ..resp::Limits::default() };
    if trusted { limits } else { limits.before_auth() }
}
