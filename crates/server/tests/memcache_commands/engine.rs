//! The commands with a cache, without a server around them.

use nuthatch_cache::{Cache, Guard, ManualClock, Options};
use nuthatch_server::memcache::commands::{Call, Next, execute};
use nuthatch_server::memcache::{Decoder, Limits, Step, reply};
use nuthatch_server::state::MemcachedState;
use nuthatch_server::state::Server;
use nuthatch_server::{Compression, CompressionOptions, DictionarySource};
use nuthatch_server::{Full, ZeroCopyValues};
use std::sync::Arc;

/// The time at which an engine begins.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

pub(crate) struct Engine {
    pub(crate) cache: Arc<Cache>,
    clock: Arc<ManualClock>,
    server: Server,
    pub(crate) shared: MemcachedState,
    /// The length of the longest value that is decoded.
    pub(crate) max_object_len: usize,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self::with(Options::new().memory(256 << 20))
    }

    pub(crate) fn with(options: Options) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        let options = options.clock(clock.clone()).seed(1);
        let cache = Arc::new(Cache::new(options).expect("a small cache"));
        let (server, shared) = (Server::new(cache.clone()), MemcachedState::new(1));
        Self { server, cache, clock, shared, max_object_len: 1 << 20 }
    }

    /// Creates an engine that compresses values of any length.
    pub(crate) fn compressed() -> Self {
        let mut engine = Self::new();
        let source = DictionarySource::Off;
        let options = CompressionOptions::default().min_len(0).dictionaries(source);
        let compression = Compression::new(&options, 64 << 20).expect("no dictionary");
        engine.server.compression = Arc::new(compression);
        engine
    }

    pub(crate) fn set_time(&self, now_ms: u64) {
        self.clock.set(now_ms);
    }

    /// Executes the requests in these bytes. Returns the result of each, and all replies.
    pub(crate) fn outcomes(&self, bytes: &[u8]) -> (Vec<Result<Next, Full>>, Vec<u8>) {
        let mut decoder =
            Decoder::new(Limits { object_len: self.max_object_len, ..Limits::default() });
        let mut session = self.cache.session().expect("one session");
        let (mut at, mut outcomes, mut out) = (0, Vec::new(), Vec::new());
        let mut zero_copy = ZeroCopyValues::default();
        while at < bytes.len() {
            match decoder.next(&bytes[at..]) {
                Step::Request { request, consumed } => {
                    at += consumed;
                    let guard = session.guard();
                    let mut call = self.call(&guard, (&mut out, &mut zero_copy));
                    outcomes.push(execute(&mut call, &request));
                }
                Step::Error { error, consumed, .. } => {
                    at += consumed;
                    reply::error(&mut out, error);
                }
                Step::Skip { consumed } => at += consumed,
                Step::More { .. } => panic!("part of a request: {}", bytes[at..].escape_ascii()),
            }
        }
        (outcomes, out)
    }

    pub(crate) fn call<'a>(
        &'a self,
        guard: &'a Guard<'a>,
        (out, zero_copy): (&'a mut Vec<u8>, &'a mut ZeroCopyValues),
    ) -> Call<'a> {
        Call { guard, server: &self.server, shared: &self.shared, out, zero_copy, prefetched: &[] }
    }

    /// Returns the replies, as text.
    pub(crate) fn run(&self, bytes: &[u8]) -> String {
        let (outcomes, out) = self.outcomes(bytes);
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(Next::Continue)), "{outcomes:?}");
        String::from_utf8(out).expect("text")
    }
}
