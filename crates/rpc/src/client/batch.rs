//! Batches of writes.

use crate::messages::convert;
use crate::messages::proto;
use bytes::Bytes;
use nuthatch_store::{Condition, Range};
use proto::write::Operation;

/// Writes and conditions that are committed together or not at all, in order.
///
/// ```
/// use nuthatch_rpc::Batch;
/// use nuthatch_store::Condition;
/// let batch = Batch::new()
///     .check("users", b"user:1", Condition::Absent)
///     .put("users", b"user:1", b"Ada");
/// assert_eq!(batch.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch(pub(super) Vec<proto::Write>);

impl Batch {
    /// Returns an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write of a value.
    #[must_use]
    pub fn put(self, table: &str, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.put_any(table, key.as_ref(), value.as_ref(), None)
    }

    /// Adds a write of a value that expires at a time, in milliseconds since 1970. The table must
    /// be stamped.
    #[must_use]
    pub fn put_until(
        self,
        table: &str,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires_at_ms: u64,
    ) -> Self {
        self.put_any(table, key.as_ref(), value.as_ref(), Some(expires_at_ms))
    }

    fn put_any(self, table: &str, key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> Self {
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        self.with(table, Operation::Put(proto::PutOperation { key, value, expires_at_ms }))
    }

    /// Adds the deletion of a key. The key does not have to exist.
    #[must_use]
    pub fn delete(self, table: &str, key: impl AsRef<[u8]>) -> Self {
        self.with(table, Operation::Delete(Bytes::copy_from_slice(key.as_ref())))
    }

    /// Adds the deletion of all keys of a range.
    #[must_use]
    pub fn delete_range(self, table: &str, range: &Range) -> Self {
        self.with(table, Operation::DeleteRange(convert::range_message(range)))
    }

    /// Adds a condition. If it is not met, nothing of the batch is written. It sees the preceding
    /// writes of the batch.
    #[must_use]
    pub fn check(self, table: &str, key: impl AsRef<[u8]>, condition: Condition<'_>) -> Self {
        let key = Bytes::copy_from_slice(key.as_ref());
        let condition = Some(convert::condition_message(condition));
        self.with(table, Operation::Check(proto::CheckOperation { key, condition }))
    }

    /// Returns the number of writes and conditions.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn with(mut self, table: &str, operation: Operation) -> Self {
        self.0.push(proto::Write { table: table.to_owned(), operation: Some(operation) });
        self
    }
}
