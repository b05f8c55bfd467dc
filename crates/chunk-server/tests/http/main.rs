//! Tests of the chunk server over sockets, with an origin that misbehaves on request.

mod client;
mod lifetime;
/// An origin that misbehaves on request.
#[allow(dead_code, reason = "shared with the tests of origins, which do more with it")]
#[path = "../../../origins/tests/reading/server.rs"]
mod origin;
mod requests;
mod tls;

use client::Client;
use nuthatch_chunk_server::{Options, Server};
use nuthatch_chunks::Options as FolderOptions;
use nuthatch_origins::{ObjectCache, Prefix, Settings};
use origin::Server as Origin;
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;

/// The length of blocks in these tests.
const BLOCK: u64 = 4096;

/// Returns settings with small blocks and without delays.
fn quick() -> Settings {
    let pause = Duration::from_millis(1);
    Settings::new()
        .block_len(BLOCK)
        .max_gap(0)
        .read_ahead(8 * BLOCK)
        .retries(0)
        .retry_delays(pause, pause)
}

fn options() -> Options {
    Options::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]).threads(1)
}

/// A chunk server and its origin.
struct Front {
    origin: Origin,
    server: Server,
    folder: TempDir,
}

impl Front {
    fn new(body: Vec<u8>) -> Self {
        Self::with(body, quick(), &options())
    }

    fn with(body: Vec<u8>, settings: Settings, options: &Options) -> Self {
        let origin = Origin::new(body);
        let address = origin.url("/data/");
        Self::before(origin, &address, settings, options)
    }

    /// Starts a server for an address, which may differ from that of the origin.
    fn before(origin: Origin, address: &str, settings: Settings, options: &Options) -> Self {
        let folder = TempDir::new().expect("a folder");
        let limit = FolderOptions::new().limit(256 << 20).min_free(0);
        let cache = ObjectCache::open(folder.path(), &limit, settings).expect("a cache");
        let prefix = Prefix::parse(address).expect("an address");
        let server = Server::start(cache, prefix, options).expect("a server");
        Self { origin, server, folder }
    }

    fn client(&self) -> Client {
        Client::connect(self.server.addresses()[0])
    }

    /// Returns the value of a metric.
    fn metric(&self, name: &str) -> u64 {
        let text = self.server.metrics().exposition();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.expect(name).parse().expect("a number")
    }

    /// Waits until a metric has this value.
    fn wait_until(&self, name: &str, number: u64) {
        while self.metric(name) != number {
            std::thread::yield_now();
        }
    }
}
