//! Sends random requests in every protocol, first in one protocol and then in all together, and
//! compares the replies with those of one simple model.
//!
//! Connections send random requests in random pieces, several requests at a time. Each has keys
//! that no other one uses before all replies have arrived; then they change. The clock goes forward
//! and back in between.

mod diagnosis;
mod lane;
mod memcache;
mod messages;
mod meta;
mod op;
mod resp;
mod store;

use lane::Lane;
use nuthatch_cache::{Cache, ManualClock, Options as CacheOptions};
use nuthatch_server::mrcache::Framing;
use nuthatch_server::state::Server;
use nuthatch_server::{Address, Listener, Options, Protocol, Running};
use nuthatch_server::{Compression, CompressionOptions, DictionarySource};
use op::{Ask, Op, op};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

const LANES: usize = 5;
const START_MS: u64 = 1_700_000_000_000;
const DAY_MS: i64 = 86_400_000;

#[derive(Clone, Debug)]
enum Step {
    /// All connections send requests, each for keys that depend on the round.
    Ask {
        round: usize,
        ops: [Vec<Op>; LANES],
        /// The lengths of the pieces.
        pieces: Vec<usize>,
    },
    /// Moves the clock by this many milliseconds.
    Move(i64),
    /// Removes all keys: by `FLUSHALL`, by `flush_all`, or by `flush_all` with a delay in seconds.
    Flush(u8),
    /// Closes a connection, and opens another one.
    Reconnect(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let lane = || vec(op(), 0..10);
    let ops = [lane(), lane(), lane(), lane(), lane()];
    let piece = prop_oneof![1..4_usize, 1..100_usize, 1000..40_000_usize];
    let by_ms = prop_oneof![
        3 => 1..3000_i64,
        3 => 1..70_000_i64,
        1 => (1..100_i64).prop_map(|days| days * DAY_MS),
    ];
    prop_oneof![
        12 => (0..LANES, ops, vec(piece, 1..6))
            .prop_map(|(round, ops, pieces)| Step::Ask { round, ops, pieces }),
        4 => by_ms.clone().prop_map(Step::Move),
        3 => by_ms.prop_map(|ms| Step::Move(-ms)),
        1 => (0..30_u8).prop_map(Step::Flush),
        1 => (0..LANES).prop_map(Step::Reconnect),
    ]
}

/// A server, connections to it, and the model.
struct World {
    server: Running,
    clock: Arc<ManualClock>,
    store: Store,
    lanes: Vec<Lane>,
    asks: [(usize, Ask); LANES],
    control: Lane,
    flusher: Lane,
    started: Instant,
    _folder: tempfile::TempDir,
}

/// The protocol of each lane, and its listener.
const RESP: (usize, Ask) = (0, resp::ask);
const TEXT: (usize, Ask) = (1, memcache::ask);
const META: (usize, Ask) = (1, meta::ask);
const PMC: (usize, Ask) = (2, messages::ask_pmc);
const MRCACHE: (usize, Ask) = (3, messages::ask_mrcache);

const PROTOCOLS: [Protocol; 4] =
    [Protocol::Resp, Protocol::Memcache, Protocol::Pmc, Protocol::Mrcache(Framing::Len4)];

fn path_of(server: &Running, listener: usize) -> &Path {
    match &server.listeners()[listener].address {
        Address::Unix(path) => path,
        Address::Tcp(_) => unreachable!("all are in a folder"),
    }
}

impl World {
    fn new(asks: [(usize, Ask); LANES], threads: usize, compresses: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(ManualClock::new(START_MS));
        let options = CacheOptions::new().memory(64 << 20).clock(Arc::<ManualClock>::clone(&clock));
        let cache = Arc::new(Cache::new(options).expect("a cache"));
        let store = Store::new(START_MS, cache.max_value_len());
        let listeners = PROTOCOLS.iter().enumerate().map(|(number, protocol)| {
            let path: PathBuf = folder.path().join(number.to_string());
            Listener::new(*protocol, Address::Unix(path))
        });
        let options = Options::new(listeners.collect()).threads(threads);
        let mut server = Server::new(cache);
        if compresses {
            let options = CompressionOptions::default().min_len(0);
            let options = options.dictionaries(DictionarySource::Off);
            let compression = Compression::new(&options, 64 << 20).expect("no dictionary");
            server.compression = Arc::new(compression);
        }
        let server = Running::serve(server, &options).expect("a server");
        let lane = |(listener, ask): (usize, Ask)| Lane::new(path_of(&server, listener), ask);
        let lanes = asks.map(lane).into();
        let (control, flusher) = (lane(RESP), lane(TEXT));
        let started = Instant::now();
        Self { server, clock, store, lanes, asks, control, flusher, started, _folder: folder }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Ask { round, ops, pieces } => self.ask(*round, ops, pieces),
            Step::Move(by_ms) => self.move_clock(*by_ms),
            Step::Flush(how) => self.flush(*how),
            Step::Reconnect(lane) => {
                let (listener, ask) = self.asks[*lane];
                self.lanes[*lane] = Lane::new(path_of(&self.server, listener), ask);
                Ok(())
            }
        }
    }

    fn ask(&mut self, round: usize, ops: &[Vec<Op>], pieces: &[usize]) -> Result<(), String> {
        for (number, (lane, ops)) in self.lanes.iter_mut().zip(ops).enumerate() {
            let first = (number + round) % LANES;
            let keys = [first, first + LANES].map(|key| format!("key:{key}"));
            lane.prepare(ops, [keys[0].as_bytes(), keys[1].as_bytes()], &mut self.store);
        }
        let mut pieces = pieces.iter().cycle();
        loop {
            let mut more = false;
            for lane in &mut self.lanes {
                more |= lane.send(*pieces.next().expect("one at least"));
            }
            if !more {
                break;
            }
        }
        self.lanes.iter_mut().try_for_each(|lane| lane.compare(&mut self.store))
    }

    /// Whether an expired key exists again depends on whether its memory was reused. If it exists
    /// it must have the value it had, and a key that never expired must exist.
    fn move_clock(&mut self, by_ms: i64) -> Result<(), String> {
        let now_ms = self.store.now_ms.saturating_add_signed(by_ms).max(DAY_MS.unsigned_abs());
        self.clock.set(now_ms);
        self.store.set_now(now_ms);
        self.control.get(b"PING\r\n");
        for key in self.store.back_again() {
            let request = [b"GET ", &*key, b"\r\n"].concat();
            match self.control.get(&request) {
                None => drop(self.store.remove(&key)),
                found if found == self.store.get(&key).map(|entry| entry.value.clone()) => {}
                found => return Err(format!("{key:?} came back as {found:?}")),
            }
        }
        Ok(())
    }

    fn flush(&mut self, how: u8) -> Result<(), String> {
        let (lane, request, answer) = match how {
            0..10 => (&mut self.control, "FLUSHALL\r\n".to_owned(), "+OK\r\n"),
            10..20 => (&mut self.flusher, "flush_all\r\n".to_owned(), "OK\r\n"),
            _ => (&mut self.flusher, format!("flush_all {}\r\n", how - 19), "OK\r\n"),
        };
        let secs = how.saturating_sub(19);
        if how >= 10 {
            let at_ms = self.store.now_ms + u64::from(secs) * 1000;
            self.store.flush_at_ms = Some(at_ms).filter(|_| secs > 0);
        }
        if secs == 0 {
            self.store.clear();
        }
        lane.expect(request.as_bytes(), answer.as_bytes())
    }

    /// Describes the connections after one of them got no reply.
    fn describe(&mut self, patience: Duration) -> String {
        let resp = path_of(&self.server, RESP.0);
        diagnosis::describe(self.started, &mut self.lanes, (resp, patience))
    }

    /// Checks that all keys of the model exist.
    fn finish(&mut self) -> Result<(), String> {
        for (key, entry) in self.store.all() {
            let request = [b"GET ", &*key, b"\r\n"].concat();
            if self.control.get(&request).as_ref() != Some(&entry.value) {
                return Err(format!("{} is not what it was at the end", key.escape_ascii()));
            }
        }
        Ok(())
    }
}

fn run(
    asks: [(usize, Ask); LANES],
    (threads, compresses): (usize, bool),
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut world = World::new(asks, threads, compresses);
    let mut outcome = steps.iter().try_for_each(|step| world.take(step));
    outcome = outcome.and_then(|()| world.finish());
    outcome.map_err(|wrong| {
        let is_silent = wrong.contains(lane::NO_ANSWER);
        let known = if is_silent { world.describe(Duration::from_secs(5)) } else { String::new() };
        TestCaseError::fail(format!("{wrong}\n{known}"))
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// One client has sent a part of a request, which the server holds.
#[test]
fn a_connection_without_a_reply_is_described_with_the_state_of_the_server() {
    let mut world = World::new([RESP, TEXT, META, PMC, MRCACHE], 1, false);
    world.lanes[1].send_part(b"set key:4 1 37 14779\r\nabc");
    let text = world.describe(Duration::from_millis(1));
    for expected in [
        " s after the server started",
        "multiplexing_api:",
        "connected_clients:",
        "cmd=",
        "qbuf=25",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(
        text.contains("connection 0: 0 bytes unsent, 0 unread; after one more line: "),
        "{text}"
    );
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn all_protocols_together(
        steps in vec(step(), 1..25),
        how in (1..3_usize, any::<bool>()),
    ) {
        run([RESP, TEXT, META, PMC, MRCACHE], how, &steps)?;
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn resp_alone(steps in vec(step(), 1..25), how in (1..3_usize, any::<bool>())) {
        run([RESP; LANES], how, &steps)?;
    }

    #[test]
    fn memcached_text_alone(steps in vec(step(), 1..25), how in (1..3_usize, any::<bool>())) {
        run([TEXT; LANES], how, &steps)?;
    }

    #[test]
    fn memcached_meta_alone(steps in vec(step(), 1..25), how in (1..3_usize, any::<bool>())) {
        run([META; LANES], how, &steps)?;
    }

    #[test]
    fn poor_mans_cache_alone(steps in vec(step(), 1..25), how in (1..3_usize, any::<bool>())) {
        run([PMC; LANES], how, &steps)?;
    }

    #[test]
    fn mrcache_alone(steps in vec(step(), 1..25), how in (1..3_usize, any::<bool>())) {
        run([MRCACHE; LANES], how, &steps)?;
    }
}
