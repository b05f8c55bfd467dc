//! The workloads that are measured, and their references.

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Filling a store, including the sync of its files.
    Build,
    /// Opening the files of a store.
    Open,
    /// Single lookups of present keys.
    GetHit,
    /// Single lookups of absent keys.
    GetMiss,
    /// Batched lookups of present keys.
    GetMany,
    /// [`GetHit`](Self::GetHit) in two threads at once: duration divided by the lookups of both.
    GetHit2Threads,
    /// Single lookups of vectors.
    GetVector,
    /// The size of the files beyond the bytes of keys and values.
    FileOverhead,
    /// Memory used by opening the files, or by filling a store in memory.
    Resident,
}

impl Work {
    /// Returns the name of the workload in rows and tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Open => "open",
            Self::GetHit => "get_hit",
            Self::GetMiss => "get_miss",
            Self::GetMany => "get_many",
            Self::GetHit2Threads => "get_hit_2_threads",
            Self::GetVector => "get_vector",
            Self::FileOverhead => "file_overhead",
            Self::Resident => "resident",
        }
    }

    /// Returns the name of the field in rows that holds the result.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::FileOverhead => "bytes_per_entry",
            Self::Resident => "resident_bytes",
            _ => "ns_per_op",
        }
    }

    /// Returns the workload of the hash map to which this workload is compared.
    pub(crate) fn of_hash_map(self) -> Self {
        if self == Self::GetMany { Self::GetHit } else { self }
    }

    /// Returns whether the result is also compared to the system's own single hits.
    pub(crate) fn is_compared_to_own_hit(self) -> bool {
        matches!(self, Self::GetMiss | Self::GetMany | Self::GetHit2Threads)
    }
}
