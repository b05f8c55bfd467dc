//! A server with clients, without sockets.

use nuthatch_cache::{Cache, Clock, Guard, ManualClock, Options, Session};
use nuthatch_server::Admission;
use nuthatch_server::resp::Span;
use nuthatch_server::resp::commands::Client;
use nuthatch_server::resp::commands::{Args, Call, Failure, execute};
use nuthatch_server::state::{Endpoints, Metrics, Server, Users};
use std::sync::Arc;

/// A server, and what its worker threads would have.
pub(crate) struct Harness {
    pub(crate) server: Server,
    pub(crate) metrics: Arc<Metrics>,
    clock: Arc<ManualClock>,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with_users("")
    }

    /// Creates a server with the users in this text.
    pub(crate) fn with_users(text: &str) -> Self {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let options = Options::new().memory(32 << 20).clock(clock.clone()).seed(1);
        let cache = Arc::new(Cache::new(options).expect("a small cache"));
        let server = Server::new(cache).with_users(Users::parse(text).expect("users"));
        let metrics = server.thread();
        Self { server, metrics, clock }
    }

    /// Advances the clock.
    pub(crate) fn wait_ms(&self, ms: u64) {
        self.clock.advance(ms);
    }

    /// Creates a client that has just connected.
    pub(crate) fn client(&self) -> Client {
        let peer = format!("127.0.0.1:{}", 40_000 + self.server.clients.len());
        let endpoints = Endpoints { peer, local: "127.0.0.1:6379".to_owned(), fd: 8 };
        self.server.connect(&self.metrics, endpoints, self.clock.now_ms()).expect("a connection")
    }

    pub(crate) fn session(&self) -> Session<'_> {
        self.server.cache.session().expect("a session")
    }

    /// Returns the reply to a request, which is executed under its own guard.
    pub(crate) fn bytes(&self, client: &mut Client, request: &[&[u8]]) -> Vec<u8> {
        self.bytes_in(&self.session().guard(), client, request).expect("there is room")
    }

    /// Returns the reply to a request that is executed under the given guard.
    pub(crate) fn bytes_in(
        &self,
        guard: &Guard<'_>,
        client: &mut Client,
        request: &[&[u8]],
    ) -> Result<Vec<u8>, Failure> {
        let bytes = request.concat();
        let mut spans = Vec::new();
        let mut start = 0;
        for argument in request {
            spans.push(Span { start, len: argument.len() as u32 });
            start += argument.len() as u32;
        }
        let mut out = b"what came before".to_vec();
        let args = Args::new(&bytes, &spans);
        let (server, out_buffer) = (&self.server, &mut out);
        let (admission, prefetched) = (Admission::Permitted, &[]);
        execute(&mut Call { guard, client, server, args, out: out_buffer, admission, prefetched })?;
        Ok(out.split_off(b"what came before".len()))
    }

    /// Returns the reply to a request of words.
    pub(crate) fn ask(&self, client: &mut Client, words: &str) -> String {
        let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
        String::from_utf8(self.bytes(client, &words)).expect("a text")
    }
}
