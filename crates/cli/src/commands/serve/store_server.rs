//! A store that is served beside the cache.

use crate::commands::store::{Secrets, keep_changes, open_store};
use crate::outcome::Failure;
use crate::process::limit_connections;
use crate::settings::{Configuration, Loaded, Place};
use nuthatch_rpc::{Options, Reloader, Server, Stopper};
use nuthatch_server::state::Exposition;
use nuthatch_server::{Address, Stopper as CacheStopper};
use nuthatch_store::{Durability, Options as StoreOptions, Store};
use std::net::SocketAddr;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A server of the store that runs.
pub(crate) struct Stored {
    server: Server,
    scheme: &'static str,
}

/// A server of the store that ends with that of the cache.
pub(crate) struct Joined {
    stopper: Stopper,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Stored {
    /// Opens the store and serves it to clients with so many connections at most. Returns none if
    /// no folder is given.
    pub(crate) fn start(loaded: &Loaded, connections: usize) -> Result<Option<Self>, Failure> {
        let Some(path) = &loaded.configuration.store else { return Ok(None) };
        let options = options(loaded)?.connections(connections);
        let usual = Options::CONNECTIONS as u64;
        limit_connections("the number of connections to the store", usual, connections as u64);
        if let Some(problem) = options.problem() {
            let at = loaded.source("grpc").named();
            return Err(Failure::Usage(format!("{at} {problem}; --insecure allows it")));
        }
        let store = open(path, &loaded.configuration)?;
        let server = Server::start(store, &options);
        let server = server.map_err(|error| {
            let at = loaded.source("grpc").named();
            Failure::Error(format!("{at}: {error}; --grpc ADDR chooses another address"))
        })?;
        let tls = loaded.configuration.grpc.iter().any(|place| place.tls);
        Ok(Some(Self { server, scheme: if tls { "grpcs" } else { "grpc" } }))
    }

    /// Where its clients connect.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        let address = |address| format!("{}://{address}", self.scheme);
        self.server.addresses().iter().map(address)
    }

    /// What it counts.
    pub(crate) fn exposition(&self) -> Exposition {
        let counts = self.server.metrics();
        Exposition::new(move || counts.exposition())
    }

    /// Returns what replaces the certificate and the tokens of the server.
    pub(crate) fn reloader(&self) -> Reloader {
        self.server.reloader()
    }

    /// Stops the cache when this one ends by itself.
    pub(crate) fn join(self, cache: CacheStopper, patience: Duration) -> Joined {
        let stopper = self.server.stopper();
        let thread = thread::spawn(move || {
            let ended = self.server.wait();
            cache.drain(patience);
            ended
        });
        Joined { stopper, thread }
    }
}

impl Joined {
    /// Returns what stops the server of the store.
    pub(crate) fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Stops, since the cache has, and waits until that is done.
    pub(crate) fn wait(self) -> Result<(), Failure> {
        self.stopper.stop();
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|_| Err(std::io::Error::other("a thread died")));
        ended.map_err(|error| Failure::Error(error.to_string()))
    }
}

/// Refuses settings of the store if there is no store. A settings file may have their defaults, as
/// the one that `--show-config` prints does.
fn refuse_without_store(loaded: &Loaded) -> Result<(), Failure> {
    let names = [
        "grpc",
        "store-allow-network-filesystem",
        "store-create",
        "store-durability",
        "store-keep-changes",
        "store-memory",
        "store-tokens",
    ];
    let is_meant = |name: &&str| loaded.is_given(name) && !loaded.is_default_from_file(name);
    match names.into_iter().find(is_meant) {
        Some(name) => {
            let at = loaded.source(name).named();
            Err(Failure::Usage(format!("{at}: expected a store too, found none")))
        }
        None => Ok(()),
    }
}

fn open(path: &Path, configuration: &Configuration) -> Result<Store, Failure> {
    let store = open_store(path, &store_options(configuration))?;
    if configuration.store_keep_changes > 0 {
        keep_changes(&store, configuration.store_keep_changes)?;
    }
    Ok(store)
}

/// Returns the options that the settings of the store are for.
fn store_options(configuration: &Configuration) -> StoreOptions {
    StoreOptions::new()
        .create(configuration.store_create)
        .durability(durability(configuration))
        .allow_network_filesystem(configuration.store_allow_network_filesystem)
}

fn durability(configuration: &Configuration) -> Durability {
    match configuration.store_durability {
        "group" => Durability::Group,
        "none" => Durability::None,
        _ => Durability::Sync,
    }
}

/// Checks the settings of the store: that there is a store, and that its addresses can be used.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Failure> {
    if loaded.configuration.store.is_none() {
        return refuse_without_store(loaded);
    }
    addresses(loaded).map(drop)
}

/// Returns the addresses to listen on.
///
/// # Errors
///
/// Fails if there is none, if one is not in the network, or if the settings of TLS do not fit them.
fn addresses(loaded: &Loaded) -> Result<Vec<SocketAddr>, Failure> {
    let grpc = &loaded.configuration.grpc;
    if grpc.is_empty() {
        let at = loaded.source("grpc").named();
        let text = format!("{at}: expected an address to listen at, found none");
        return Err(Failure::Usage(text));
    }
    if grpc.iter().any(|place| place.tls) {
        check_tls(loaded, grpc)?;
    }
    grpc.iter().map(|place| address(loaded, place)).collect()
}

fn options(loaded: &Loaded) -> Result<Options, Failure> {
    let Configuration { insecure, store_memory, .. } = &loaded.configuration;
    let mut options = Options::new(addresses(loaded)?)
        .insecure(*insecure)
        .memory(*store_memory)
        .drain(Duration::from_millis(loaded.configuration.drain_ms))
        .durability(durability(&loaded.configuration));
    let (tls, tokens) = secrets(&loaded.configuration).read()?;
    if let Some(tls) = tls {
        options = options.tls(tls);
    }
    if let Some(tokens) = tokens {
        options = options.tokens(tokens);
    }
    Ok(options)
}

/// Returns the files of the server of the store.
pub(crate) fn secrets(configuration: &Configuration) -> Secrets {
    let Configuration { tls_cert, tls_key, tls_client_ca, .. } = configuration;
    let has_tls = configuration.grpc.iter().any(|place| place.tls);
    let pair = tls_cert.clone().zip(tls_key.clone()).filter(|_| has_tls);
    let tls = pair.map(|(cert, key)| (cert, key, tls_client_ca.clone()));
    let tokens = configuration.store_tokens.as_ref();
    Secrets { tls, tokens: tokens.map(|file| file.to_string_lossy().into_owned()) }
}

fn check_tls(loaded: &Loaded, grpc: &[Place]) -> Result<(), Failure> {
    let Configuration { tls_cert, tls_key, .. } = &loaded.configuration;
    let at = loaded.source("grpc").named();
    if let Some(place) = grpc.iter().find(|place| !place.tls) {
        let text = format!("{at} {place}: expected `tls:` before all addresses or none");
        return Err(Failure::Usage(text));
    }
    if tls_cert.is_none() || tls_key.is_none() {
        return Err(Failure::Usage(format!("{at}: expected tls-cert and tls-key, too")));
    }
    Ok(())
}

fn address(loaded: &Loaded, place: &Place) -> Result<SocketAddr, Failure> {
    match &place.address {
        Address::Tcp(address) => Ok(*address),
        Address::Unix(_) => {
            let at = loaded.source("grpc").named();
            let found = "a socket in the file system";
            Err(Failure::Usage(format!("{at} {place}: expected host:port, found {found}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_filesystem_is_allowed_only_if_the_settings_say_so() {
        let mut configuration = Configuration::default();
        for (given, expected) in [(false, "false"), (true, "true")] {
            configuration.store_allow_network_filesystem = given;
            let options = format!("{:?}", store_options(&configuration));
            let expected = format!("allow_network_filesystem: {expected}");
            assert!(options.contains(&expected), "{options}");
        }
    }
}
