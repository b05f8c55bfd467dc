//! Writes that happen together or not at all.

use crate::messages::convert;
use crate::messages::proto;
use bytes::Bytes;
use nuthatch_store::{Condition, Range};
use proto::write::Act;

/// Writes and conditions that happen together or not at all, in order.
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
    /// A batch without writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a value under a key.
    #[must_use]
    pub fn put(self, table: &str, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.put_any(table, key.as_ref(), value.as_ref(), None)
    }

    /// Writes a value that expires at a time, in milliseconds since the beginning of 1970, into a
    /// stamped table.
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
        self.with(table, Act::Put(proto::PutAct { key, value, expires_at_ms }))
    }

    /// Deletes a key, if it is there.
    #[must_use]
    pub fn delete(self, table: &str, key: impl AsRef<[u8]>) -> Self {
        self.with(table, Act::Delete(Bytes::copy_from_slice(key.as_ref())))
    }

    /// Deletes all keys of a range.
    #[must_use]
    pub fn delete_range(self, table: &str, range: &Range) -> Self {
        self.with(table, Act::DeleteRange(convert::range_message(range)))
    }

    /// Has nothing of the batch happen unless a condition holds. Writes before it in the batch
    /// count.
    #[must_use]
    pub fn check(self, table: &str, key: impl AsRef<[u8]>, condition: Condition<'_>) -> Self {
        let key = Bytes::copy_from_slice(key.as_ref());
        let condition = Some(convert::condition_message(condition));
        self.with(table, Act::Check(proto::CheckAct { key, condition }))
    }

    /// How many writes and conditions there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn with(mut self, table: &str, act: Act) -> Self {
        self.0.push(proto::Write { table: table.to_owned(), act: Some(act) });
        self
    }
}
