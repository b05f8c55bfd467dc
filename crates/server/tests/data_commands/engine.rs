//! The commands with a cache, without a server around them.

use nuthatch_cache::{Cache, ManualClock, Options, Session};
use nuthatch_server::Admission;
use nuthatch_server::resp::Span;
use nuthatch_server::resp::Version;
use nuthatch_server::resp::commands::Client;
use nuthatch_server::resp::commands::{Args, Call, Failure, execute};
use nuthatch_server::state::Server;
use nuthatch_server::{Compression, CompressionOptions, DictionarySource};
use std::sync::Arc;

/// A cache, and the state that its connections share.
pub(crate) struct Engine {
    cache: Arc<Cache>,
    clock: Arc<ManualClock>,
    server: Server,
}

impl Engine {
    /// Creates an empty cache at this time.
    pub(crate) fn new(now_ms: u64) -> Self {
        let clock = Arc::new(ManualClock::new(now_ms));
        let options = Options::new().memory(64 << 20).clock(clock.clone()).seed(1);
        let cache = Arc::new(Cache::new(options).expect("a small cache"));
        let server = Server::new(cache.clone());
        Self { cache, clock, server }
    }

    /// Creates an empty cache at this time that compresses values of any length.
    pub(crate) fn compressed(now_ms: u64) -> Self {
        Self::with_dictionaries(now_ms, DictionarySource::Off)
    }

    /// Creates an empty cache at this time that compresses values of any length, with these
    /// dictionaries.
    pub(crate) fn with_dictionaries(now_ms: u64, source: DictionarySource) -> Self {
        let mut engine = Self::new(now_ms);
        let options = CompressionOptions::default().min_len(0).dictionaries(source);
        let compression = Compression::new(&options, 64 << 20).expect("a valid dictionary");
        engine.server.compression = Arc::new(compression);
        engine
    }

    /// Returns whether the value of a key is compressed.
    pub(crate) fn is_compressed(&self, key: &[u8]) -> bool {
        let mut session = self.cache.session().expect("few sessions");
        session.guard().peek(key).expect("there").is_compressed()
    }

    /// Creates a connection that uses this version of the protocol.
    pub(crate) fn connect(&self, version: Version) -> Connection<'_> {
        let session = self.cache.session().expect("few sessions");
        let mut client = Client::default();
        client.version = version;
        Connection { engine: self, session, client }
    }
}

pub(crate) struct Connection<'e> {
    engine: &'e Engine,
    session: Session<'e>,
    client: Client,
}

impl Connection<'_> {
    /// Sets the time of the engine.
    pub(crate) fn set_time(&self, now_ms: u64) {
        self.engine.clock.set(now_ms);
    }

    /// Returns the reply to a request.
    pub(crate) fn run(&mut self, request: &[impl AsRef<[u8]>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut spans = Vec::new();
        for argument in request {
            let argument = argument.as_ref();
            spans.push(Span { start: bytes.len() as u32, len: argument.len() as u32 });
            bytes.extend_from_slice(argument);
        }
        let mut out = Vec::new();
        let mut guard = self.session.guard();
        loop {
            let result = execute(&mut Call {
                guard: &guard,
                client: &mut self.client,
                server: &self.engine.server,
                args: Args::new(&bytes, &spans),
                out: &mut out,
                admission: Admission::Permitted,
                prefetched: &[],
            });
            match result {
                Ok(()) => return out,
                Err(Failure::Full) => assert!(guard.renew(), "a new guard has memory"),
                Err(Failure::Reply(text)) => panic!("it was not answered: {text}"),
            }
        }
    }
}
