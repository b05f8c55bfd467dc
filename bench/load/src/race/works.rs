//! What the systems of a race are asked to do.

use crate::batches::{Work, Workload};
use crate::protocol::Protocol;
use nuthatch_bench::Distribution;

/// One work of a race.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) name: &'static str,
    /// The data it needs: works with the same data share a server that is filled once.
    pub(crate) data: Data,
    pub(crate) work: Work,
    pub(crate) distribution: Distribution,
    pub(crate) pipeline: usize,
    /// The language that all must speak, or else each its first.
    pub(crate) protocol: Option<Protocol>,
    /// The work of redis that figures are divided by.
    pub(crate) reference: &'static str,
}

/// What servers are filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) keys: u32,
    pub(crate) value_bytes: usize,
}

const SMALL: Data = Data { keys: 1_000_000, value_bytes: 100 };
const TINY: Data = Data { keys: 1_000_000, value_bytes: 16 };
const LARGE: Data = Data { keys: 100_000, value_bytes: 10 << 10 };
const ZIPF: Distribution = Distribution::Zipf(0.99);

const GET: Task = Task {
    name: "get100",
    data: SMALL,
    work: Work::Get,
    distribution: Distribution::Uniform,
    pipeline: 100,
    protocol: None,
    reference: "get100",
};

/// All works; those with the same data follow each other. One that stores comes last of them, so
/// that the others read what filling stored.
pub(crate) const TASKS: [Task; 9] = [
    GET,
    Task { name: "zipf100", distribution: ZIPF, reference: "zipf100", ..GET },
    Task { name: "get32", pipeline: 32, reference: "get32", ..GET },
    Task { name: "get1", pipeline: 1, reference: "get1", ..GET },
    Task { name: "get100-meta", protocol: Some(Protocol::Meta), ..GET },
    Task { name: "get100-text", protocol: Some(Protocol::Memcache), ..GET },
    Task { name: "set100", work: Work::Set, reference: "set100", ..GET },
    Task { name: "zipf16", data: TINY, distribution: ZIPF, reference: "zipf16", ..GET },
    Task { name: "get10k", data: LARGE, pipeline: 32, reference: "get10k", ..GET },
];

impl Task {
    /// What a server that speaks this protocol is sent.
    pub(crate) fn workload(&self, protocol: Protocol) -> Workload {
        Workload {
            protocol,
            work: self.work,
            keys: self.data.keys,
            distribution: self.distribution,
            value_bytes: self.data.value_bytes,
            pipeline: self.pipeline,
        }
    }
}
