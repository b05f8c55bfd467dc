//! Which protocol a connection speaks, and what is known of a request that is not whole.

use crate::commands::Server;
use crate::drivers::PmcDecoder;
use crate::listener::Protocol;
use crate::protocol::mrcache::Framing;
use crate::protocol::{memcache, mrcache, pmc, resp};

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
        let (gathered_most, gathered_limit) = server.gathered_limit();
        match protocol {
            Protocol::Resp => Self::Resp(resp::Decoder::new(resp_limits(server, trusted))),
            Protocol::Memcache => {
                Self::Memcache(memcache::Decoder::new(memcache_limits(server, trusted)))
            }
            Protocol::Pmc => {
                let most = u32::try_from(gathered_most + KEY_AND_VERB_MOST).unwrap_or(u32::MAX);
                Self::Pmc(Box::new(PmcDecoder {
                    messages: pmc::Decoder::new(most).limited_by(gathered_limit),
                    resp: resp::Decoder::new(resp_limits(server, trusted)),
                }))
            }
            Protocol::Mrcache(framing) => {
                let limits =
                    mrcache::Limits { value_len: gathered_most, ..mrcache::Limits::default() };
                Self::Mrcache(framing, mrcache::Decoder::new(limits))
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
            Self::Pmc(decoder) => decoder.resp.set_limits(resp_limits(server, true)),
            Self::Memcache(decoder) => {
                *decoder = memcache::Decoder::new(memcache_limits(server, true));
            }
            Self::Mrcache(..) => {}
        }
    }
}

/// Of a message of poor-man's-cache, all but the value, at most.
const KEY_AND_VERB_MOST: usize = nuthatch_cache::Cache::KEY_MOST + 5;

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
