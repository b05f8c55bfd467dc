//! Batches of requests, generated before the clock starts.

use crate::keys::{Values, key};
use crate::protocol::Protocol;
use crate::replies::Heads;
use nuthatch_bench::{Distribution, Draws};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

/// The kinds of requests in a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Requests read values.
    Get,
    /// Requests store values.
    Set,
    /// This share of the requests reads, and the rest stores values.
    Mixed(f64),
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "get" => return Ok(Self::Get),
            "set" => return Ok(Self::Set),
            _ => {}
        }
        let share = text.strip_prefix("mixed:").and_then(|digits| digits.parse().ok());
        share
            .filter(|share: &f64| *share > 0.0 && *share < 1.0)
            .map(Self::Mixed)
            .ok_or_else(|| "expected get, set, or mixed: and a number between 0 and 1".into())
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get => f.write_str("get"),
            Self::Set => f.write_str("set"),
            Self::Mixed(share) => write!(f, "mixed:{share}"),
        }
    }
}

impl Work {
    /// Returns the share of requests that read.
    fn reads(self) -> f64 {
        match self {
            Self::Get => 1.0,
            Self::Set => 0.0,
            Self::Mixed(share) => share,
        }
    }
}

/// The parameters that determine the requests.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The protocol of the server.
    pub protocol: Protocol,
    /// The kinds of requests.
    pub work: Work,
    /// Number of distinct keys; at least one.
    pub keys: u32,
    /// The distribution of the requests over the keys.
    pub distribution: Distribution,
    /// Length of a value in bytes; at least one.
    pub value_bytes: usize,
    /// Number of requests in a batch; at least one. A connection sends a batch at once, and awaits
    /// its replies before the next batch.
    pub pipeline: usize,
}

/// Maximum number of generated requests. They reach nearly all of a million keys, and are too many
/// to stay in the processor caches of a server.
const MAX_REQUESTS: usize = 1 << 22;

/// Maximum number of generated requests for each key, which limits workloads with few keys.
const REQUESTS_PER_KEY: usize = 8;

/// Minimum number of batches, whatever their size. Fewer batches would repeat too soon.
const MIN_BATCHES: usize = 64;

/// Memory limit of the generated requests in bytes, unless [`MIN_BATCHES`] need more.
const MAX_BYTES: usize = 256 << 20;

/// Memory limit of the requests in one step of filling a server, in bytes.
const MAX_FILL_BYTES: usize = 32 << 20;

/// Size of a batch that fills a server, in bytes: about as much as a socket accepts at once.
const FILL_BATCH_BYTES: usize = 64 << 10;

/// Batches of requests in one allocation.
#[derive(Debug)]
pub(crate) struct Batches {
    bytes: Arc<Vec<u8>>,
    each: Vec<Batch>,
    pub(crate) heads: Heads,
}

/// One batch of requests.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The range of its bytes in the allocation.
    pub(crate) part: Range<usize>,
    /// Number of requests in the batch that are counted.
    pub(crate) requests: u64,
    /// Number of replies to the batch.
    pub(crate) replies: u64,
}

impl Batches {
    /// Generates the batches of a workload with this seed.
    pub(crate) fn drawn(workload: &Workload, seed: u64) -> Self {
        let Workload { keys, distribution, work, pipeline, .. } = *workload;
        let mut draws = Draws::new(distribution, keys, seed);
        let mut builder = Builder::new(workload);
        let enough = MAX_REQUESTS.min(REQUESTS_PER_KEY * keys as usize).div_ceil(pipeline);
        let is_enough =
            |builder: &Builder| builder.batches.len() >= enough || builder.bytes.len() >= MAX_BYTES;
        while builder.batches.len() < MIN_BATCHES || !is_enough(&builder) {
            for left in (0..pipeline).rev() {
                let number = draws.draw();
                let reads = draws.is_one_of(work.reads());
                // If a protocol does not acknowledge sets, the reply to a final get proves their
                // execution.
                let reads = reads || left == 0 && builder.needs_last_get(work);
                if reads { builder.get(number) } else { builder.set(number) }
            }
            builder.end_batch(pipeline as u64);
        }
        builder.finish(work)
    }

    /// Returns batches that set keys from `first` on, each once, and the first key that remains.
    pub(crate) fn filling(workload: &Workload, first: u32) -> (Self, u32) {
        let mut builder = Builder::new(workload);
        let mut next = first;
        while next < workload.keys && builder.bytes.len() < MAX_FILL_BYTES {
            let (start, first) = (builder.bytes.len(), next);
            while next < workload.keys && builder.bytes.len() - start < FILL_BATCH_BYTES {
                builder.set(next);
                next += 1;
            }
            builder.end_batch(u64::from(next - first));
        }
        (builder.finish(Work::Set), next)
    }

    /// Returns one batch with one request for one key.
    pub(crate) fn greeting(workload: &Workload) -> Self {
        let mut builder = Builder::new(workload);
        builder.get(0);
        builder.end_batch(1);
        builder.finish(Work::Get)
    }

    pub(crate) fn count(&self) -> usize {
        self.each.len()
    }

    pub(crate) fn get(&self, at: usize) -> &Batch {
        &self.each[at]
    }

    /// Returns the bytes of all requests.
    pub(crate) fn bytes(&self) -> &Arc<Vec<u8>> {
        &self.bytes
    }
}

struct Builder {
    protocol: Protocol,
    values: Values,
    bytes: Vec<u8>,
    batches: Vec<Batch>,
    /// The offset at which the current batch begins.
    start: usize,
    replies: u64,
    /// The last key of an unacknowledged set, if no get follows it.
    unanswered: Option<u32>,
}

impl Builder {
    fn new(workload: &Workload) -> Self {
        Self {
            protocol: workload.protocol,
            values: Values::new(workload.value_bytes),
            bytes: Vec::new(),
            batches: Vec::new(),
            start: 0,
            replies: 0,
            unanswered: None,
        }
    }

    fn get(&mut self, number: u32) {
        self.protocol.get(&key(number), &mut self.bytes);
        self.replies += 1;
        self.unanswered = None;
    }

    fn set(&mut self, number: u32) {
        let values = &self.values;
        let value = |out: &mut Vec<u8>| values.append(number, out);
        self.protocol.set(&key(number), values.size(), value, &mut self.bytes);
        if self.protocol.answers_sets() {
            self.replies += 1;
        } else {
            self.unanswered = Some(number);
        }
    }

    fn needs_last_get(&self, work: Work) -> bool {
        matches!(work, Work::Mixed(_)) && !self.protocol.answers_sets()
    }

    fn end_batch(&mut self, requests: u64) {
        if let Some(number) = self.unanswered {
            self.get(number);
        }
        let part = self.start..self.bytes.len();
        self.start = part.end;
        let replies = std::mem::take(&mut self.replies);
        self.batches.push(Batch { part, requests, replies });
    }

    fn finish(self, work: Work) -> Batches {
        let gets = self.protocol.get_heads(self.values.size());
        let sets = self.protocol.set_heads();
        let heads = match work {
            Work::Get => gets,
            Work::Set if sets.is_empty() => gets,
            Work::Set => sets,
            Work::Mixed(_) => gets.into_iter().chain(sets).collect(),
        };
        let bytes = Arc::new(self.bytes);
        Batches { bytes, each: self.batches, heads: Heads::new(heads) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKLOAD: Workload = Workload {
        protocol: Protocol::Resp,
        work: Work::Get,
        keys: 1,
        distribution: Distribution::Uniform,
        value_bytes: 18,
        pipeline: 2,
    };

    fn first(protocol: Protocol, work: Work) -> (String, Batch) {
        let batches = Batches::drawn(&Workload { protocol, work, ..WORKLOAD }, 1);
        let batch = batches.get(0).clone();
        let text = batches.bytes()[batch.part.clone()].escape_ascii().to_string();
        (text, batch)
    }

    /// Returns the value of key 0, which has 18 bytes.
    fn value() -> String {
        let mut value = Vec::new();
        Values::new(18).append(0, &mut value);
        String::from_utf8(value).expect("letters")
    }

    #[test]
    fn gets_are_right_to_the_byte() {
        let texts = [
            (Protocol::Resp, r"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000\r\n"),
            (Protocol::Memcache, r"get key:000000000000\r\n"),
            (Protocol::Meta, r"mg key:000000000000 v\r\n"),
            (Protocol::Mrcache, r"\x00\x01\x10\x00key:000000000000"),
            (Protocol::Pmc, r"GET key:000000000000\x1f"),
        ];
        for (protocol, text) in texts {
            let (found, batch) = first(protocol, Work::Get);
            assert_eq!(found, text.repeat(2), "{protocol}");
            assert_eq!((batch.requests, batch.replies), (2, 2), "{protocol}");
        }
    }

    #[test]
    fn sets_are_right_to_the_byte() {
        let texts = [
            (Protocol::Resp, r"*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000000\r\n$18\r\nVALUE\r\n"),
            (Protocol::Memcache, r"set key:000000000000 0 0 18\r\nVALUE\r\n"),
            (Protocol::Meta, r"ms key:000000000000 18\r\nVALUE\r\n"),
            (Protocol::Pmc, r"SET key:000000000000 VALUE\x1f"),
        ];
        for (protocol, text) in texts {
            let (found, batch) = first(protocol, Work::Set);
            assert_eq!(found, text.replace("VALUE", &value()).repeat(2), "{protocol}");
            assert_eq!((batch.requests, batch.replies), (2, 2), "{protocol}");
        }
    }

    #[test]
    fn sets_without_replies_are_followed_by_a_get() {
        let set = format!(r"\x00\x02\x10\x00\x12\x00\x00\x00key:000000000000{}", value());
        let get = r"\x00\x01\x10\x00key:000000000000";
        let (found, batch) = first(Protocol::Mrcache, Work::Set);
        assert_eq!(found, format!("{set}{set}{get}"));
        assert_eq!((batch.requests, batch.replies), (2, 1));
    }

    #[test]
    fn a_mixed_batch_has_a_reply_at_its_end() {
        let workload = Workload {
            protocol: Protocol::Mrcache,
            work: Work::Mixed(0.25),
            pipeline: 5000,
            ..WORKLOAD
        };
        let batches = Batches::drawn(&workload, 1);
        for at in 0..batches.count() {
            let Batch { part, requests, replies } = batches.get(at);
            let (start, last) = (&batches.bytes()[part.start..][..4], part.end - 20);
            assert!(matches!(start, [0, 1 | 2, 16, 0]), "{start:?}");
            assert_eq!(batches.bytes()[last..][..4], [0, 1, 16, 0]);
            assert_eq!(*requests, 5000);
            assert!((1050..1450).contains(replies), "{replies} of 5000 are a quarter");
        }
    }

    #[test]
    fn filling_sets_every_key_once() {
        let workload = Workload { keys: 100_000, value_bytes: 1000, ..WORKLOAD };
        let (mut next, mut count, mut steps) = (0, 0, 0);
        while next < workload.keys {
            let (batches, after) = Batches::filling(&workload, next);
            let text = String::from_utf8(batches.bytes().to_vec()).expect("text");
            for (number, set) in (next..).zip(text.split("*3\r\n").skip(1)) {
                let head = format!("$3\r\nSET\r\n$16\r\nkey:{number:012}\r\n$1000\r\nkey:");
                assert!(set.starts_with(&head), "{set}");
                count += 1;
            }
            (next, steps) = (after, steps + 1);
        }
        assert_eq!(count, workload.keys);
        assert!(steps > 1, "a hundred megabytes are not made at once");
    }

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        let workload = Workload { keys: 1000, pipeline: 100, ..WORKLOAD };
        let bytes = |seed| Batches::drawn(&workload, seed).bytes().clone();
        assert!(bytes(1) == bytes(1));
        assert!(bytes(1) != bytes(2));
    }

    #[test]
    fn works_round_trip() {
        for text in ["get", "set", "mixed:0.9"] {
            assert_eq!(text.parse::<Work>().map(|work| work.to_string()), Ok(text.into()));
        }
        for text in ["", "put", "mixed", "mixed:0", "mixed:1", "mixed:nan"] {
            assert!(text.parse::<Work>().is_err(), "{text}");
        }
    }
}
