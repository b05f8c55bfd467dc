//! Executes scripts on a chunk cache, and compares the results with a model.

use nuthatch_chunks::{Check, Chunks, Clock, Error, Key, Lookup, Options};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limit of the cache in bytes.
pub const LIMIT: u64 = 4 << 20;
/// Bytes of a script for each step.
const STEP_LEN: usize = 4;
/// Maximum number of chunks in an object.
const CHUNKS: u64 = 16;
/// The first byte of a step that puts chunks.
pub const PUT: u8 = 0;
/// The first byte of a step that gets chunks.
pub const GET: u8 = 4;

/// A clock that the script advances.
#[derive(Clone)]
struct ScriptClock(Arc<AtomicU64>);

impl Clock for ScriptClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns the offsets and the bytes of a range of chunks. The bytes depend on the object, the
/// chunk and `kind`.
#[must_use]
pub fn bytes(object: u8, range: Range<u64>, kind: u8) -> (Vec<u64>, Vec<u8>) {
    let (mut offsets, mut data) = (vec![0], Vec::new());
    for chunk in range {
        // From one byte to more than a fiftieth of the limit.
        let len = 1 + (u64::from(object) * 31 + chunk * 77) % 70 * 1200;
        let first = u64::from(object) << 16 | chunk << 8 | u64::from(kind);
        data.extend((0..len).map(|at| (first * 7 + at * 13 + at / 251) as u8));
        offsets.push(data.len() as u64);
    }
    (offsets, data)
}

/// Returns the key of an object.
#[must_use]
pub fn key(object: u8) -> Key {
    Key::named(format!("object {object}")).expect("a key")
}

/// Returns a step that executes operation `what` on a range of an object's chunks.
#[must_use]
pub fn step(what: u8, object: u8, range: &Range<u64>) -> [u8; STEP_LEN] {
    [what, object, range.start as u8, (range.end - range.start).saturating_sub(1) as u8]
}

/// The model: for each chunk of each object, the kind of its bytes and its expiry time.
type Put = BTreeMap<(u8, u64), (u8, u64)>;

struct Run<'a> {
    folder: &'a Path,
    options: Options,
    clock: ScriptClock,
    chunks: Chunks,
    put: Put,
}

/// Executes a script on a cache in `folder`.
///
/// # Panics
///
/// If a get returns bytes that were not put, were removed or have expired, or if the cache exceeds
/// its limit.
pub fn run(folder: &Path, script: &[u8]) {
    let clock = ScriptClock(Arc::new(AtomicU64::new(1)));
    let checks = [Check::Always, Check::Once, Check::Never];
    let check = checks[script.len() % 3];
    let options = Options::new().limit(LIMIT).check(check).clock(Arc::new(clock.clone()));
    let chunks = Chunks::open(folder, &options).expect("a cache");
    let mut run = Run { folder, options, clock, chunks, put: Put::new() };
    for step in script.chunks_exact(STEP_LEN) {
        run.step([step[0], step[1], step[2], step[3]]);
    }
    assert_eq!(run.chunks.verify().damaged, 0, "the cache is not damaged");
    let used = run.chunks.stat().used;
    assert!(used <= LIMIT, "{used} bytes of {LIMIT}");
}

impl Run<'_> {
    fn step(&mut self, [what, object, start, len]: [u8; STEP_LEN]) {
        let start = u64::from(start) % CHUNKS;
        let range = start..(start + 1 + u64::from(len) % 6).min(CHUNKS);
        match what % 16 {
            PUT..=2 => self.put(object, &range, 0, 0),
            3 => self.put(object, &range, len >> 4, u64::from(len)),
            GET..=7 => self.get(object, &range),
            8 => self.view(object, &range),
            9 => {
                self.chunks.remove(&key(object)).expect("a list of pins that can be read");
                self.put.retain(|(put, _), _| *put != object);
            }
            10 => self.chunks.pin(&key(object), len.is_multiple_of(2)).expect("a pin"),
            11 => {
                self.clock.0.fetch_add(u64::from(start), Ordering::Relaxed);
            }
            12 => drop(self.chunks.prune(Some(LIMIT / (1 + u64::from(len)))).expect("room")),
            13 if len == 0 => drop(self.chunks.clear().expect("room")),
            14 => self.chunks = Chunks::open(self.folder, &self.options).expect("a cache"),
            _ => self.list(),
        }
    }

    fn put(&mut self, object: u8, range: &Range<u64>, kind: u8, expiry: u64) {
        let (offsets, data) = bytes(object, range.clone(), kind);
        match self.chunks.put_until(&key(object), range.clone(), &offsets, &data, expiry) {
            Ok(stored) => {
                let sum = stored.stored + stored.present;
                let all = range.end - range.start;
                assert!(sum == all || stored.not_kept.is_some(), "{sum} of {all}: {stored:?}");
                for chunk in range.clone() {
                    // A chunk that is present remains, with the later expiry time.
                    let before = self.put.get(&(object, chunk));
                    let until = before.filter(|before| before.0 == kind).map_or(expiry, |before| {
                        if before.1 == 0 || expiry == 0 { 0 } else { before.1.max(expiry) }
                    });
                    self.put.insert((object, chunk), (kind, until));
                }
                // The most recent chunk is not evicted to make room for itself.
                if stored.stored == all && expiry == 0 {
                    let last = range.end - 1..range.end;
                    let missing = self.chunks.missing(&key(object), last);
                    assert!(
                        missing.expect("a look").is_empty(),
                        "the chunk that was just put is present"
                    );
                }
            }
            Err(Error::Conflict { chunk }) => {
                let there = self.put.get(&(object, chunk)).map(|there| there.0);
                assert!(there.is_some_and(|there| there != kind), "no conflict with {there:?}");
            }
            Err(error) => panic!("a put: {error}"),
        }
    }

    /// Asserts that `found` contains the bytes that were put.
    fn check(&self, object: u8, range: &Range<u64>, found: &[u8]) {
        let now = self.clock.now_ms();
        let mut rest = found;
        for chunk in range.clone() {
            let put = self.put.get(&(object, chunk));
            let (kind, expiry) = put.unwrap_or_else(|| panic!("{object} {chunk} was not put"));
            assert!(*expiry == 0 || now < *expiry, "{object} {chunk} has expired");
            let expected = bytes(object, chunk..chunk + 1, *kind).1;
            let (here, later) = rest.split_at_checked(expected.len()).expect("its bytes");
            assert!(here == expected, "other bytes of {object} {chunk}");
            rest = later;
        }
        assert!(rest.is_empty(), "more bytes than were requested");
    }

    fn get(&self, object: u8, range: &Range<u64>) {
        match self.chunks.get(&key(object), range.clone()).expect("a get") {
            Lookup::Found(found) => self.check(object, range, &found.data),
            Lookup::Missing(missing) => {
                assert!(
                    missing.iter().all(|part| range.start <= part.start && part.end <= range.end)
                );
                assert!(!missing.is_empty(), "nothing is missing, and nothing was found");
            }
        }
    }

    fn view(&self, object: u8, range: &Range<u64>) {
        if let Lookup::Found(view) = self.chunks.view(&key(object), range.clone()).expect("a view")
        {
            self.check(object, range, &view.to_vec());
            assert!(view.is_intact(), "the segment is not truncated");
        }
    }

    fn list(&self) {
        for object in self.chunks.list() {
            assert!(object.chunks > 0, "an object without chunks");
        }
    }
}
