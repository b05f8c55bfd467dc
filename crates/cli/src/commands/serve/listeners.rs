//! The addresses that the cache server listens at.

use super::cluster::has_default_address;
use crate::logs;
use crate::outcome::Failure;
use crate::settings::LoadedSettings;
use nuthatch_listen::admin::BindError;
use nuthatch_listen::unused_sockets;
use nuthatch_server::mrcache::Framing;
use nuthatch_server::{ListenError, Listener, Protocol, Running};

/// Returns the addresses to listen at, with the protocol of each.
pub(super) fn listeners(loaded: &LoadedSettings) -> Result<Vec<Listener>, Failure> {
    let settings = &loaded.settings;
    let framing = if settings.mrcache_reply == "ver6" { Framing::Ver6 } else { Framing::Len4 };
    let all = [
        (Protocol::Resp, &settings.resp),
        (Protocol::Memcache, &settings.memcache),
        (Protocol::Pmc, &settings.pmc),
        (Protocol::Mrcache(framing), &settings.mrcache),
    ];
    // The default address of memcached is for servers without a cluster.
    let is_skipped = |protocol| {
        protocol == Protocol::Memcache
            && settings.cluster != "off"
            && has_default_address(loaded, "memcache")
    };
    let all = all.into_iter().filter(|(protocol, _)| !is_skipped(*protocol));
    let listeners = all.flat_map(|(protocol, listen_addresses)| {
        listen_addresses.iter().map(move |listen_address| {
            let mut listener = Listener::new(protocol, listen_address.address.clone());
            listener.tls = listen_address.tls;
            listener.optional = protocol == Protocol::Memcache && !loaded.is_set("memcache");
            listener
        })
    });
    let listeners: Vec<_> = listeners.collect();
    if listeners.is_empty() {
        return Err(Failure::Usage("expected an address to listen on, found none".to_owned()));
    }
    Ok(listeners)
}

/// Warns of default addresses that another process uses, and of passed sockets at which clients
/// would wait for ever.
pub(super) fn warn_of_addresses(loaded: &LoadedSettings, running: &Running) {
    let is_admin_skipped = running.admin().is_empty() && !loaded.settings.admin.is_empty();
    let admin = loaded.settings.admin.iter().filter(|_| is_admin_skipped);
    let listeners = running.skipped().iter();
    let skipped = listeners
        .map(|listener| (setting_of(listener.protocol), listener.address.to_string()))
        .chain(admin.map(|listen_address| ("admin", listen_address.to_string())));
    for (name, address) in skipped {
        logs::warn(format_args!(
            "{name} {address} is in use: the server goes on without it; --{name} ADDR chooses \
             another, --{name} off ends this warning"
        ));
    }
    for address in unused_sockets() {
        logs::warn(format_args!(
            "the parent process, such as systemd, has opened {address}, and no setting names it: \
             use it as an address of this server, or remove it from the socket unit"
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

/// Returns the failure of the server to start. If an address cannot be used, it names the setting.
pub(super) fn start_failure(loaded: &LoadedSettings, error: &std::io::Error) -> Failure {
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
        let Ok(loaded) = LoadedSettings::load(None, Environment::default(), &Flags::default())
        else {
            panic!("the default settings")
        };
        let in_use = || std::io::Error::from(Errno::ADDRINUSE);
        let listener = listeners(&loaded).ok().and_then(|listeners| listeners.into_iter().next());
        let error = ListenError { listener: listener.expect("that of Redis"), error: in_use() };
        let Failure::Error(message) = start_failure(&loaded, &error.into()) else {
            panic!("a failure")
        };
        let expected = "default: resp: 127.0.0.1:6379: Address already in use (os error 98); \
                        --resp ADDR chooses another address, --resp off does without";
        assert_eq!(message, expected);
    }
}
