//! The workloads of the benchmark.

use crate::batches::{Work, Workload};
use crate::keys::KEY_BYTES;
use crate::protocol::Protocol;
use nuthatch_bench::Distribution;

/// A workload of the benchmark.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) name: &'static str,
    /// The data that the servers store. Workloads with the same data share servers, which are
    /// filled once.
    pub(crate) data: Data,
    pub(crate) work: Work,
    pub(crate) distribution: Distribution,
    pub(crate) pipeline: usize,
    /// The required protocol, or `None` for the first protocol of each system.
    pub(crate) protocol: Option<Protocol>,
    /// Whether only systems that store items on disk can do it.
    pub(crate) needs_disk: bool,
    /// The workload of Redis whose results are the divisor.
    pub(crate) reference: &'static str,
}

/// The data with which servers are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) keys: u32,
    pub(crate) value_bytes: usize,
}

const SMALL: Data = Data { keys: 1_000_000, value_bytes: 100 };
const TINY: Data = Data { keys: 1_000_000, value_bytes: 16 };
const LARGE: Data = Data { keys: 100_000, value_bytes: 10 << 10 };
/// More keys than the caches of any processor hold.
const MANY: Data = Data { keys: 10_000_000, value_bytes: 100 };
const ZIPF: Distribution = Distribution::Zipf(0.99);

const GET: Task = Task {
    name: "get100",
    data: SMALL,
    work: Work::Get,
    distribution: Distribution::Uniform,
    pipeline: 100,
    protocol: None,
    needs_disk: false,
    reference: "get100",
};

/// Memory of the systems with a disk, in MiB. The workloads have ten times as much data.
pub(crate) const DISK_MEMORY_MIB: u32 = 64;

/// Returns ten times as much data as the systems with a disk have memory.
const fn beyond_memory(value_bytes: usize) -> Data {
    let bytes = 10 * ((DISK_MEMORY_MIB as usize) << 20);
    Data { keys: (bytes / (KEY_BYTES + value_bytes)) as u32, value_bytes }
}

const DISK: Task = Task {
    name: "disk100",
    data: beyond_memory(100),
    distribution: ZIPF,
    pipeline: 1,
    needs_disk: true,
    reference: "disk100",
    ..GET
};

/// All workloads. Those with the same data are adjacent, and the one that stores comes last, so
/// that the others read the original values.
pub(crate) const TASKS: [Task; 15] = [
    GET,
    Task { name: "zipf100", distribution: ZIPF, reference: "zipf100", ..GET },
    Task { name: "get32", pipeline: 32, reference: "get32", ..GET },
    Task { name: "get1", pipeline: 1, reference: "get1", ..GET },
    Task { name: "get100-meta", protocol: Some(Protocol::Meta), ..GET },
    Task { name: "get100-text", protocol: Some(Protocol::Memcache), ..GET },
    Task { name: "set100", work: Work::Set, reference: "set100", ..GET },
    Task { name: "zipf16", data: TINY, distribution: ZIPF, reference: "zipf16", ..GET },
    Task { name: "get10k", data: LARGE, pipeline: 32, reference: "get10k", ..GET },
    Task { name: "get100-10m", data: MANY, reference: "get100-10m", ..GET },
    Task { name: "zipf100-10m", data: MANY, distribution: ZIPF, reference: "zipf100-10m", ..GET },
    Task { name: "set100-10m", data: MANY, work: Work::Set, reference: "set100-10m", ..GET },
    DISK,
    Task { name: "disk1k", data: beyond_memory(1 << 10), reference: "disk1k", ..DISK },
    Task { name: "disk10k", data: beyond_memory(10 << 10), reference: "disk10k", ..DISK },
];

impl Task {
    /// Returns the requests for a server with this protocol.
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
