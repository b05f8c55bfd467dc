//! The RESP command that a request corresponds to.

use crate::memcache::{Meta, MetaVerb, Request, Store, StoreMode};

/// Returns the RESP command whose permission a request needs.
pub(crate) fn command(request: &Request<'_>) -> &'static str {
    let store = |mode| match mode {
        StoreMode::Set | StoreMode::Add | StoreMode::Replace => "set",
        StoreMode::Append | StoreMode::Prepend => "append",
    };
    match request {
        Request::Get(get) if get.exptime.is_some() => "getex",
        Request::Get(_) => "get",
        Request::Store(Store { mode, .. }) => store(*mode),
        Request::Arith(_) => "incrby",
        Request::Touch { .. } => "expire",
        Request::Delete { .. } => "del",
        Request::FlushAll { .. } => "flushall",
        Request::Stats { .. } => "info",
        Request::Meta(Meta { verb, flags, .. }) => match verb {
            // These flags create items, change their expiry, or mark them.
            MetaVerb::Get if [b'N', b'T', b'R'].iter().any(|flag| flags.has(*flag)) => "getex",
            MetaVerb::Get => "get",
            MetaVerb::Set(mode) => store(*mode),
            MetaVerb::Delete => "del",
            MetaVerb::Arith(_) => "incrby",
            MetaVerb::Debug => "object",
        },
        Request::TooLarge(_) => "set",
        Request::Version | Request::Verbosity { .. } | Request::Noop | Request::Quit => "ping",
    }
}
