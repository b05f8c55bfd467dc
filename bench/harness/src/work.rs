//! The works: what is measured, and against what.

/// A work that systems are measured at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Filling a store, to files that are synced where it has files.
    Build,
    /// Opening those files.
    Open,
    /// Single lookups of keys that are there.
    GetHit,
    /// Single lookups of keys that are not.
    GetMiss,
    /// Lookups in batches of keys that are there.
    GetMany,
    /// As [`GetHit`](Self::GetHit), in two threads at once: time by lookups of both.
    GetHit2Threads,
    /// Single lookups of vectors.
    GetVector,
    /// What the files hold beyond the bytes of keys and values.
    FileOverhead,
    /// Memory taken by opening the files, or by filling a store that lives in memory.
    Resident,
}

impl Work {
    /// What rows and tables call it.
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

    /// What its figures are called in rows.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::FileOverhead => "bytes_per_entry",
            Self::Resident => "resident_bytes",
            _ => "ns_per_op",
        }
    }

    /// The work of the hash map that it is compared with.
    pub(crate) fn of_hash_map(self) -> Self {
        if self == Self::GetMany { Self::GetHit } else { self }
    }

    /// Whether it is worth comparing with the system's own single hits.
    pub(crate) fn is_told_by_own_hit(self) -> bool {
        matches!(self, Self::GetMiss | Self::GetMany | Self::GetHit2Threads)
    }
}
