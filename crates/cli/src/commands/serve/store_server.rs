//! The store server beside the cache server.

use crate::commands::store::{Credentials, keep_changes, open_store};
use crate::outcome::Failure;
use crate::process::limit_connections;
use crate::settings::{ListenAddress, LoadedSettings, Settings, others_in_group};
use nuthatch_rpc::{Options, Reloader, Server, Stopper};
use nuthatch_server::state::{Exposition, LiveTables};
use nuthatch_server::{Address, Stopper as CacheStopper};
use nuthatch_store::{Durability, Options as StoreOptions, Store};
use std::net::SocketAddr;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A running store server.
pub(crate) struct StoreServer {
    server: Server,
    scheme: &'static str,
}

/// A store server that ends together with the cache server.
pub(crate) struct StoreThread {
    stopper: Stopper,
    thread: JoinHandle<std::io::Result<()>>,
}

impl StoreServer {
    /// Opens the store and serves it to at most `connections` clients. Returns `None` if the
    /// settings have no store.
    pub(crate) fn start(
        loaded: &LoadedSettings,
        connections: usize,
    ) -> Result<Option<Self>, Failure> {
        let Some(path) = &loaded.settings.store else { return Ok(None) };
        let options = options(loaded)?.connections(connections);
        let usual = Options::CONNECTIONS as u64;
        limit_connections("the number of connections to the store", usual, connections as u64);
        if let Some(problem) = options.problem() {
            let at = loaded.source("grpc").named();
            return Err(Failure::Usage(format!("{at} {problem}; --insecure allows it")));
        }
        let store = open(path, &loaded.settings)?;
        let server = Server::start(store, &options);
        let server = server.map_err(|error| {
            let at = loaded.source("grpc").named();
            Failure::Error(format!("{at}: {error}; --grpc ADDR chooses another address"))
        })?;
        let tls = loaded.settings.grpc.iter().any(|listen_address| listen_address.tls);
        Ok(Some(Self { server, scheme: if tls { "grpcs" } else { "grpc" } }))
    }

    /// Returns the addresses for clients.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        let address = |address| format!("{}://{address}", self.scheme);
        self.server.addresses().iter().map(address)
    }

    /// Returns the metrics.
    pub(crate) fn exposition(&self) -> Exposition {
        let counts = self.server.metrics();
        Exposition::new(move || counts.exposition())
    }

    /// Returns the metric of its certificates.
    pub(crate) fn certificate_exposition(&self) -> Exposition {
        let counts = self.server.metrics();
        Exposition::new(move || counts.certificate_exposition())
    }

    /// Returns the tables of the store for the live page.
    pub(crate) fn live_tables(&self) -> LiveTables {
        let counts = self.server.metrics();
        LiveTables::new(move || counts.live_tables())
    }

    /// Returns a handle that replaces the certificate and the tokens of the server.
    pub(crate) fn reloader(&self) -> Reloader {
        self.server.reloader()
    }

    /// Starts a thread that waits for the server, and stops the cache server when it ends.
    pub(crate) fn join(self, cache: CacheStopper, drain_time: Duration) -> StoreThread {
        let stopper = self.server.stopper();
        let thread = thread::spawn(move || {
            let ended = self.server.wait();
            cache.drain(drain_time);
            ended
        });
        StoreThread { stopper, thread }
    }
}

impl StoreThread {
    /// Returns a handle that stops the store server.
    pub(crate) fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Stops the store server and waits until it has ended.
    pub(crate) fn wait(self) -> Result<(), Failure> {
        self.stopper.stop();
        let ended = self.thread.join();
        let ended = ended.unwrap_or_else(|_| Err(std::io::Error::other("a thread panicked")));
        ended.map_err(|error| Failure::Error(error.to_string()))
    }
}

/// Fails if settings of the store are set without a store. A settings file may have their defaults,
/// like the one that `--show-config` prints.
fn refuse_without_store(loaded: &LoadedSettings) -> Result<(), Failure> {
    let mut names = others_in_group("store").map(|setting| setting.name);
    match names.find(|name| loaded.is_set(name) && !loaded.is_default_from_file(name)) {
        Some(name) => {
            let at = loaded.source(name).named();
            Err(Failure::Usage(format!("{at}: expected a store as well (--store), found none")))
        }
        None => Ok(()),
    }
}

fn open(path: &Path, settings: &Settings) -> Result<Store, Failure> {
    let store = open_store(path, &store_options(settings))?;
    if settings.store_keep_changes > 0 {
        keep_changes(&store, settings.store_keep_changes)?;
    }
    Ok(store)
}

/// Returns the options for opening the store.
fn store_options(settings: &Settings) -> StoreOptions {
    StoreOptions::new()
        .create(settings.store_create)
        .durability(durability(settings))
        .allow_network_filesystem(settings.store_allow_network_filesystem)
}

fn durability(settings: &Settings) -> Durability {
    match settings.store_durability {
        "group" => Durability::Group,
        "none" => Durability::None,
        _ => Durability::Sync,
    }
}

/// Checks the settings of the store: that there is a store, and that its addresses can be used.
pub(crate) fn check(loaded: &LoadedSettings) -> Result<(), Failure> {
    if loaded.settings.store.is_none() {
        return refuse_without_store(loaded);
    }
    addresses(loaded).map(drop)
}

/// Returns the addresses to listen on.
///
/// # Errors
///
/// Fails if there is none, if one is not in the network, or if the settings of TLS do not fit them.
fn addresses(loaded: &LoadedSettings) -> Result<Vec<SocketAddr>, Failure> {
    let grpc = &loaded.settings.grpc;
    if grpc.is_empty() {
        let at = loaded.source("grpc").named();
        let text = format!("{at}: expected an address to listen on, found none");
        return Err(Failure::Usage(text));
    }
    if grpc.iter().any(|listen_address| listen_address.tls) {
        check_tls(loaded, grpc)?;
    }
    grpc.iter().map(|listen_address| address(loaded, listen_address)).collect()
}

fn options(loaded: &LoadedSettings) -> Result<Options, Failure> {
    let Settings { insecure, store_memory, .. } = &loaded.settings;
    let mut options = Options::new(addresses(loaded)?)
        .insecure(*insecure)
        .memory(*store_memory)
        .drain(Duration::from_millis(loaded.settings.drain_ms))
        .durability(durability(&loaded.settings));
    let (tls, tokens) = credentials(&loaded.settings).read()?;
    if let Some(tls) = tls {
        options = options.tls(tls);
    }
    if let Some(tokens) = tokens {
        options = options.tokens(tokens);
    }
    Ok(options)
}

/// Returns the credentials of the store server.
pub(crate) fn credentials(settings: &Settings) -> Credentials {
    let Settings { tls_cert, tls_key, tls_client_ca, .. } = settings;
    let has_tls = settings.grpc.iter().any(|listen_address| listen_address.tls);
    let pair = tls_cert.clone().zip(tls_key.clone()).filter(|_| has_tls);
    let tls = pair.map(|(cert, key)| (cert, key, tls_client_ca.clone()));
    let tokens = settings.store_tokens.as_ref();
    Credentials { tls, tokens: tokens.map(|file| file.to_string_lossy().into_owned()) }
}

fn check_tls(loaded: &LoadedSettings, grpc: &[ListenAddress]) -> Result<(), Failure> {
    let Settings { tls_cert, tls_key, .. } = &loaded.settings;
    let at = loaded.source("grpc").named();
    if let Some(listen_address) = grpc.iter().find(|listen_address| !listen_address.tls) {
        let text = format!("{at} {listen_address}: expected `tls:` before all addresses or none");
        return Err(Failure::Usage(text));
    }
    if tls_cert.is_none() || tls_key.is_none() {
        return Err(Failure::Usage(format!("{at}: expected tls-cert and tls-key, too")));
    }
    Ok(())
}

fn address(loaded: &LoadedSettings, listen_address: &ListenAddress) -> Result<SocketAddr, Failure> {
    match &listen_address.address {
        Address::Tcp(address) => Ok(*address),
        Address::Unix(_) => {
            let at = loaded.source("grpc").named();
            let found = "a socket in the file system";
            Err(Failure::Usage(format!("{at} {listen_address}: expected host:port, found {found}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_filesystem_is_allowed_only_if_the_settings_say_so() {
        let mut settings = Settings::default();
        for (is_allowed, expected) in [(false, "false"), (true, "true")] {
            settings.store_allow_network_filesystem = is_allowed;
            let options = format!("{:?}", store_options(&settings));
            let expected = format!("allow_network_filesystem: {expected}");
            assert!(options.contains(&expected), "{options}");
        }
    }
}
