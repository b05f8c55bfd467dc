//! Batches: writes that are committed together or not at all.

use crate::error::{Error, Result};
use crate::range::Range;
use crate::table::Table;
use crate::write::{Condition, WriteTxn};

/// Estimated memory of each write beyond its bytes.
const BYTES_PER_WRITE: usize = 64;

/// Writes and conditions that are applied in order, all or none.
///
/// ```
/// # use nuthatch_store::{Batch, Condition, Options, Store};
/// # let folder = tempfile::tempdir()?;
/// # let store = Store::open(folder.path().join("store"), &Options::new())?;
/// let users = store.table("users")?;
/// let batch = Batch::new()
///     .check(&users, b"user:1", Condition::Absent)
///     .put(&users, b"user:1", b"Ada")
///     .put(&users, b"name:Ada", b"user:1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    writes: Vec<Write>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum Write {
    Put { table: Table, key: Vec<u8>, value: Vec<u8>, expires_at_ms: Option<u64> },
    Delete { table: Table, key: Vec<u8> },
    DeleteRange { table: Table, range: Range },
    Check { table: Table, key: Vec<u8>, condition: OwnedCondition },
}

/// A condition that owns its value.
#[derive(Clone, Debug)]
enum OwnedCondition {
    Absent,
    Present,
    Equals(Vec<u8>),
    Version(u64),
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write of a value.
    #[must_use]
    pub fn put(self, table: &Table, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        let (key, value) = (key.into(), value.into());
        let len = key.len() + value.len();
        self.with(len, Write::Put { table: table.clone(), key, value, expires_at_ms: None })
    }

    /// Adds a write of a value that expires at a time, in milliseconds since 1970. The table must
    /// be stamped.
    #[must_use]
    pub fn put_until(
        self,
        table: &Table,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        expires_at_ms: u64,
    ) -> Self {
        let (table, key, value) = (table.clone(), key.into(), value.into());
        let len = key.len() + value.len();
        self.with(len, Write::Put { table, key, value, expires_at_ms: Some(expires_at_ms) })
    }

    /// Adds the deletion of a key. The key does not have to exist.
    #[must_use]
    pub fn delete(self, table: &Table, key: impl Into<Vec<u8>>) -> Self {
        let key = key.into();
        self.with(key.len(), Write::Delete { table: table.clone(), key })
    }

    /// Adds the deletion of all keys of a range.
    #[must_use]
    pub fn delete_range(self, table: &Table, range: Range) -> Self {
        self.with(0, Write::DeleteRange { table: table.clone(), range })
    }

    /// Adds a condition. If it is not met, nothing of the batch is written. It sees the preceding
    /// writes of the batch.
    #[must_use]
    pub fn check(self, table: &Table, key: impl Into<Vec<u8>>, condition: Condition<'_>) -> Self {
        let (table, key) = (table.clone(), key.into());
        let condition = match condition {
            Condition::Absent => OwnedCondition::Absent,
            Condition::Present => OwnedCondition::Present,
            Condition::Equals(value) => OwnedCondition::Equals(value.to_vec()),
            Condition::Version(version) => OwnedCondition::Version(version),
        };
        self.with(key.len(), Write::Check { table, key, condition })
    }

    /// Returns the number of writes and conditions.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns whether the batch has no writes and conditions.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the estimated memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn with(mut self, len: usize, write: Write) -> Self {
        self.bytes += len + BYTES_PER_WRITE;
        self.writes.push(write);
        self
    }

    /// Returns whether the batch could fail after some of its writes were done.
    pub(crate) fn can_fail_halfway(&self) -> bool {
        let mut written = false;
        self.writes.iter().any(|write| {
            let before = written;
            written |= !matches!(write, Write::Check { .. });
            before || matches!(write, Write::DeleteRange { .. })
        })
    }

    /// Applies the batch in a transaction. Returns the number of deleted keys. If it fails, some
    /// writes may be done: the caller drops the transaction then.
    pub(crate) fn apply(&self, txn: &mut WriteTxn<'_>) -> Result<u64> {
        let mut deleted = 0;
        for (nth, write) in self.writes.iter().enumerate() {
            match write {
                Write::Put { table, key, value, expires_at_ms: None } => {
                    txn.put(table, key, value)?;
                }
                Write::Put { table, key, value, expires_at_ms: Some(at) } => {
                    txn.put_until(table, key, value, *at)?;
                }
                Write::Delete { table, key } => deleted += u64::from(txn.delete(table, key)?),
                Write::DeleteRange { table, range } => deleted += txn.delete_range(table, range)?,
                Write::Check { table, key, condition } => {
                    if !txn.holds(table, key, condition.borrowed())? {
                        return Err(Error::ConditionUnmet { write: nth });
                    }
                }
            }
        }
        Ok(deleted)
    }
}

impl OwnedCondition {
    fn borrowed(&self) -> Condition<'_> {
        match self {
            Self::Absent => Condition::Absent,
            Self::Present => Condition::Present,
            Self::Equals(value) => Condition::Equals(value),
            Self::Version(version) => Condition::Version(*version),
        }
    }
}
