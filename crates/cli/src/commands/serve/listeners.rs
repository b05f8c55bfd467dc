//! The addresses that the cache server listens at.

use crate::logs;
use crate::outcome::Failure;
use crate::settings::Loaded;
use nuthatch_server::admin::BindError;
use nuthatch_server::mrcache::Framing;
use nuthatch_server::{ListenError, Listener, Protocol, Running};

/// Where to listen, and what is spoken there.
pub(super) fn listeners(loaded: &Loaded) -> Result<Vec<Listener>, Failure> {
    let configuration = &loaded.configuration;
    let framing = if configuration.mrcache_reply == "ver6" { Framing::Ver6 } else { Framing::Len4 };
    let all = [
        (Protocol::Resp, &configuration.resp),
        (Protocol::Memcache, &configuration.memcache),
        (Protocol::Pmc, &configuration.pmc),
        (Protocol::Mrcache(framing), &configuration.mrcache),
    ];
    let listeners = all.into_iter().flat_map(|(protocol, places)| {
        places.iter().map(move |place| {
            let mut listener = Listener::new(protocol, place.address.clone());
            listener.tls = place.tls;
            listener.optional = protocol == Protocol::Memcache && !loaded.is_given("memcache");
            listener
        })
    });
    let listeners: Vec<_> = listeners.collect();
    if listeners.is_empty() {
        return Err(Failure::Usage("expected an address to listen at, found none".to_owned()));
    }
    Ok(listeners)
}

/// Warns of the addresses that nobody has configured and that are in use.
pub(super) fn tell_skipped(loaded: &Loaded, running: &Running) {
    let is_admin_skipped = running.admin().is_empty() && !loaded.configuration.admin.is_empty();
    let admin = loaded.configuration.admin.iter().filter(|_| is_admin_skipped);
    let listeners = running.skipped().iter();
    let skipped = listeners
        .map(|listener| (setting_of(listener.protocol), listener.address.to_string()))
        .chain(admin.map(|place| ("admin", place.to_string())));
    for (name, address) in skipped {
        logs::warn(format_args!(
            "{name} {address} is in use: the server goes on without it; --{name} ADDR chooses \
             another, --{name} off ends this warning"
        ));
    }
}

/// Returns the setting with the addresses of a protocol.
fn setting_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Resp => "resp",
        Protocol::Memcache => "memcache",
        Protocol::Pmc => "pmc",
        Protocol::Mrcache(_) => "mrcache",
    }
}

/// Why the server did not start: an address that cannot be listened at is named with its setting.
pub(super) fn not_started(loaded: &Loaded, error: &std::io::Error) -> Failure {
    let inner = error.get_ref();
    let listener = inner.and_then(|inner| inner.downcast_ref::<ListenError>());
    let admin = inner.and_then(|inner| inner.downcast_ref::<BindError>());
    let name = match (listener, admin) {
        (Some(ListenError { listener, .. }), _) => setting_of(listener.protocol),
        (None, Some(_)) => "admin",
        (None, None) => return Failure::Error(error.to_string()),
    };
    let at = loaded.source(name).named();
    let advice = format!("--{name} ADDR chooses another address, --{name} off does without");
    Failure::Error(format!("{at}: {error}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Environment, Flags};
    use rustix::io::Errno;

    #[test]
    fn a_default_port_in_use_is_named_with_its_setting_and_the_flag() {
        let Ok(loaded) = Loaded::load(None, Environment::default(), &Flags::default()) else {
            panic!("the default settings")
        };
        let in_use = || std::io::Error::from(Errno::ADDRINUSE);
        let listener = listeners(&loaded).ok().and_then(|listeners| listeners.into_iter().next());
        let error = ListenError { listener: listener.expect("that of Redis"), error: in_use() };
        let Failure::Error(message) = not_started(&loaded, &error.into()) else {
            panic!("a failure")
        };
        let expected = "default: resp: 127.0.0.1:6379: Address already in use (os error 98); \
                        --resp ADDR chooses another address, --resp off does without";
        assert_eq!(message, expected);
    }
}
