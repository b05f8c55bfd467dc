//! Requests to etcd and its responses, without a transport.

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: String,
    /// The value. Bytes that are not UTF-8 are replaced.
    pub value: String,
    /// The revision at which the key changed last.
    pub revision: i64,
    /// The lease to which the key is bound, or 0.
    pub lease: i64,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key changed last at this revision; 0 if the key does not exist.
    Revision(String, i64),
    /// The key exists and is bound to this lease, which is not 0.
    Lease(String, i64),
    /// The key does not exist.
    Absent(String),
}

/// A write of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Sets a key, bound to a lease if that is not 0.
    Put {
        /// The key.
        key: String,
        /// Its new value.
        value: String,
        /// Its lease, or 0.
        lease: i64,
    },
    /// Deletes a key.
    Delete(String),
}

/// A transaction: its writes are made if all conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// The conditions.
    pub compares: Vec<Compare>,
    /// The writes.
    pub writes: Vec<Write>,
}

/// A request to etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Creates a lease that ends after this many seconds.
    Grant {
        /// The time to live in seconds.
        ttl_s: i64,
    },
    /// Extends a lease.
    KeepAlive {
        /// The lease.
        lease: i64,
    },
    /// Ends a lease, and deletes its keys.
    Revoke {
        /// The lease.
        lease: i64,
    },
    /// Reads one key.
    Read(String),
    /// Reads all keys with a prefix.
    ReadPrefix(String),
    /// Executes a transaction.
    Commit(Txn),
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A new lease.
    Granted {
        /// The lease.
        lease: i64,
        /// Its time to live in seconds, which may be longer than requested.
        ttl_s: i64,
    },
    /// A lease that was extended.
    KeptAlive {
        /// Its time to live in seconds; 0 if it has expired.
        ttl_s: i64,
    },
    /// A lease that has ended.
    Revoked,
    /// Keys that were read.
    Read(Vec<KeyValue>),
    /// A transaction that was executed.
    Committed {
        /// Whether all conditions held.
        succeeded: bool,
    },
}

/// A response of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The revision of the store when the request was executed. For a transaction that has written:
    /// the revision of its keys.
    pub revision: i64,
    /// The term of Raft of the member that responded.
    pub term: u64,
    /// The result.
    pub reply: Reply,
}

/// Why a request has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The lease of the request does not exist: the request was not executed.
    LeaseAbsent,
    /// No response arrived: etcd could not be reached, or has no leader. The request may have been
    /// executed, or may still be.
    Unknown(String),
    /// etcd refuses the request, or is another one than before. The request may have been executed.
    Refused(String),
}

/// A change of a key that a watch reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A key was set.
    Put(KeyValue),
    /// A key was deleted.
    Deleted {
        /// The key.
        key: String,
        /// The revision at which it was deleted.
        revision: i64,
    },
}

impl Change {
    /// Returns the revision of the change.
    #[must_use]
    pub fn revision(&self) -> i64 {
        match self {
            Self::Put(key) => key.revision,
            Self::Deleted { revision, .. } => *revision,
        }
    }
}
