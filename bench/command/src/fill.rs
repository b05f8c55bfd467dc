//! `nuthatch-bench fill`: measures single writes while a cache fills up, grows its index, evicts
//! and expires items.
//!
//! Each write is timed by the wall clock, and by the processor time of its thread. On a shared
//! machine, the longest wall-clock times include the time during which other processes had the
//! core.

pub(crate) mod command;

use crate::failure::Failure;
use hdrhistogram::Histogram;
use nuthatch_bench::Random;
use nuthatch_cache::{Cache, Options, Prefill, Write as Store};
use nuthatch_units::{bytes, grouped};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fmt::Write;
use std::sync::Arc;
use std::thread;

/// Bytes of a key.
const KEY_LEN: usize = 16;

/// One of this many writes replaces an earlier value.
const WRITES_PER_REPLACEMENT: u64 = 4;
/// One of this many writes sets a time to live.
const WRITES_PER_EXPIRY: u64 = 8;
/// The time to live, in milliseconds.
const EXPIRES_IN_MS: u64 = 500;

/// Maximum time that the histogram distinguishes, in nanoseconds.
const MAX_NS: u64 = 60_000_000_000;

/// The settings of `nuthatch-bench fill`.
pub(crate) struct FillBench {
    /// Memory budget in bytes.
    pub(crate) memory: u64,
    /// Bytes of a value.
    pub(crate) value_len: usize,
    /// Number of bytes written, as a multiple of the memory budget.
    pub(crate) times: u64,
    /// Number of writing threads.
    pub(crate) threads: u32,
    /// Whether to print rows in JSON instead of a table.
    pub(crate) json: bool,
}

/// The clock that measures a write.
#[derive(Clone, Copy)]
enum Time {
    Clock,
    Processor,
}

impl Time {
    fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Processor => "processor",
        }
    }

    fn now_ns(self) -> u64 {
        let id = match self {
            Self::Clock => ClockId::Monotonic,
            Self::Processor => ClockId::ThreadCPUTime,
        };
        let Timespec { tv_sec, tv_nsec } = clock_gettime(id);
        tv_sec.unsigned_abs() * 1_000_000_000 + tv_nsec.unsigned_abs()
    }
}

/// The reported quantiles of the write times.
const SHARES: [(&str, f64); 5] =
    [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999), ("max", 1.0)];

struct Filled {
    time: Time,
    writes: u64,
    evicted: u64,
    expired: u64,
    held: Histogram<u64>,
}

impl FillBench {
    /// Fills one cache for each clock, and returns the output to print.
    pub(crate) fn run(&self) -> Result<String, Failure> {
        let [clock, processor] = [Time::Clock, Time::Processor].map(|time| self.fill(time));
        let all = [clock?, processor?];
        Ok(if self.json { json(&all) } else { self.table(&all) })
    }

    fn fill(&self, time: Time) -> Result<Filled, Failure> {
        let cache = Cache::new(Options::new().memory(self.memory)).map_err(Failure::of)?;
        let cache = Arc::new(cache);
        let _prefill = Prefill::start(&cache).map_err(Failure::of)?;
        let held = thread::scope(|scope| {
            let part = |thread| {
                let cache = &cache;
                scope.spawn(move || self.fill_part(cache, time, thread))
            };
            let parts: Vec<_> = (0..self.threads).map(part).collect();
            let mut all = histogram()?;
            for part in parts {
                let part = part.join().map_err(|_| Failure::of("a thread panicked"))??;
                all.add(part).map_err(Failure::of)?;
            }
            Ok::<_, Failure>(all)
        })?;
        let stats = cache.stats();
        let writes = held.len();
        Ok(Filled { time, writes, evicted: stats.evicted, expired: stats.expired, held })
    }

    /// Executes the writes of one thread, and returns their times.
    fn fill_part(&self, cache: &Cache, time: Time, thread: u32) -> Result<Histogram<u64>, Failure> {
        let mut session = cache.session().map_err(Failure::of)?;
        let mut held = histogram()?;
        let mut random = Random::new(1 + u64::from(thread));
        let value = vec![b'v'; self.value_len];
        let writes = self.times * self.memory / (KEY_LEN + self.value_len) as u64;
        let mut before = time.now_ns();
        for number in (u64::from(thread)..writes).step_by(self.threads as usize) {
            let again = number % WRITES_PER_REPLACEMENT == 0;
            let below = u32::try_from(number + 1).unwrap_or(u32::MAX);
            let number = if again { u64::from(random.below(below)) } else { number };
            let key = format!("key:{number:012}");
            let mut store = Store::new();
            if number % WRITES_PER_EXPIRY == 0 {
                store = store.expires_in_ms(EXPIRES_IN_MS);
            }
            let mut guard = session.guard();
            while guard.set(key.as_bytes(), &value, &store).is_err() {
                if !guard.renew() {
                    return Err(Failure::of("the cache is full, and no memory could be freed"));
                }
            }
            drop(guard);
            let now = time.now_ns();
            held.saturating_record(now.saturating_sub(before).max(1));
            before = now;
        }
        Ok(held)
    }

    fn table(&self, all: &[Filled]) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} writes of {} into {}, {} evicted; microseconds of a write",
            grouped(all[0].writes),
            bytes((KEY_LEN + self.value_len) as u64),
            bytes(self.memory),
            grouped(all[0].evicted),
        );
        let _ = write!(text, "{:<10}", "time");
        for (name, _) in SHARES {
            let _ = write!(text, "{name:>10}");
        }
        let _ = writeln!(text, "{:>14}", "above 1 ms");
        for filled in all {
            let _ = write!(text, "{:<10}", filled.time.name());
            for (_, share) in SHARES {
                let _ = write!(text, "{:>10.1}", filled.held.value_at_quantile(share) as f64 / 1e3);
            }
            let _ = writeln!(text, "{:>14}", filled.above_a_millisecond());
        }
        text
    }
}

fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new_with_bounds(1, MAX_NS, 3).map_err(Failure::of)
}

impl Filled {
    fn above_a_millisecond(&self) -> u64 {
        self.held.count_between(1_000_001, MAX_NS)
    }
}

fn json(all: &[Filled]) -> String {
    let rows = all.iter().map(|filled| {
        let Filled { time, writes, evicted, expired, held } = filled;
        let mut row = format!("{{\"time\":\"{}\",\"writes\":{writes}", time.name());
        for (name, share) in SHARES {
            // Writing to a string cannot fail.
            let _ = write!(row, ",\"{name}_ns\":{}", held.value_at_quantile(share));
        }
        let above = filled.above_a_millisecond();
        row + &format!(",\"above_1_ms\":{above},\"evicted\":{evicted},\"expired\":{expired}}}")
    });
    format!("[{}]\n", rows.collect::<Vec<_>>().join(",\n "))
}
