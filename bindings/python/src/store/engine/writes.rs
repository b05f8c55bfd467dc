//! Writes that are collected for a store, with their bytes in one buffer.

use super::condition::OwnedCondition;
use super::tables::TableRef;
use crate::failure::{Failure, Outcome};
use nuthatch_store::{Range, Store, WriteTxn};
use std::ops;

/// Estimated overhead of a write in bytes, in addition to its key and value.
const WRITE_LEN: usize = 64;

/// Writes and conditions, in order.
#[derive(Clone, Default)]
pub(crate) struct Writes {
    data: Vec<u8>,
    operations: Vec<(Option<TableRef>, Operation)>,
}

#[derive(Clone)]
enum Operation {
    Put { key: Span, value: Span, expires_at_ms: Option<u64> },
    Append { key: Span, value: Span },
    Delete { key: Span },
    DeleteRange(Range),
    Check { key: Span, condition: OwnedCondition },
}

/// The location of a key or a value in the buffer.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

impl ops::Index<Span> for Writes {
    type Output = [u8];

    fn index(&self, span: Span) -> &[u8] {
        self.data.get(span.start..span.end).unwrap_or_default()
    }
}

/// A write without a table uses the default table of the object that commits it.
impl Writes {
    pub(crate) fn put(
        &mut self,
        table: Option<TableRef>,
        key: &[u8],
        value: &[u8],
        expires_at_ms: Option<u64>,
    ) {
        let (key, value) = (self.copy(key), self.copy(value));
        self.operations.push((table, Operation::Put { key, value, expires_at_ms }));
    }

    pub(crate) fn append(&mut self, table: Option<TableRef>, key: &[u8], value: &[u8]) {
        let (key, value) = (self.copy(key), self.copy(value));
        self.operations.push((table, Operation::Append { key, value }));
    }

    pub(crate) fn delete(&mut self, table: Option<TableRef>, key: &[u8]) {
        let key = self.copy(key);
        self.operations.push((table, Operation::Delete { key }));
    }

    pub(crate) fn delete_range(&mut self, table: Option<TableRef>, range: Range) {
        self.operations.push((table, Operation::DeleteRange(range)));
    }

    pub(crate) fn check(&mut self, table: Option<TableRef>, key: &[u8], condition: OwnedCondition) {
        let key = self.copy(key);
        self.operations.push((table, Operation::Check { key, condition }));
    }

    pub(crate) fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns the approximate memory of the writes in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len() + self.operations.len() * WRITE_LEN
    }

    /// Returns the table of each write: the named one, or the default.
    pub(crate) fn tables<'w>(
        &'w self,
        default: &'w TableRef,
    ) -> impl Iterator<Item = &'w TableRef> {
        self.operations.iter().map(|(table, _)| table.as_ref().unwrap_or(default))
    }

    /// Converts the writes into a batch of a store in this process.
    pub(crate) fn batch(
        &self,
        store: &Store,
        default: &TableRef,
    ) -> Outcome<nuthatch_store::Batch> {
        let mut batch = nuthatch_store::Batch::new();
        for (table, operation) in &self.operations {
            let table = table.as_ref().unwrap_or(default).open(store)?;
            batch = match operation {
                Operation::Put { key, value, expires_at_ms: None } => {
                    batch.put(&table, &self[*key], &self[*value])
                }
                Operation::Put { key, value, expires_at_ms: Some(at) } => {
                    batch.put_until(&table, &self[*key], &self[*value], *at)
                }
                Operation::Append { .. } => return Err(appending()),
                Operation::Delete { key } => batch.delete(&table, &self[*key]),
                Operation::DeleteRange(range) => batch.delete_range(&table, range.clone()),
                Operation::Check { key, condition } => {
                    batch.check(&table, &self[*key], condition.condition())
                }
            };
        }
        Ok(batch)
    }

    /// Converts the writes into a batch of a server.
    pub(crate) fn remote_batch(&self, default: &TableRef) -> Outcome<nuthatch_rpc::Batch> {
        let mut batch = nuthatch_rpc::Batch::new();
        for (table, operation) in &self.operations {
            let table = table.as_ref().unwrap_or(default).name();
            batch = match operation {
                Operation::Put { key, value, expires_at_ms: None } => {
                    batch.put(table, &self[*key], &self[*value])
                }
                Operation::Put { key, value, expires_at_ms: Some(at) } => {
                    batch.put_until(table, &self[*key], &self[*value], *at)
                }
                Operation::Append { .. } => return Err(appending()),
                Operation::Delete { key } => batch.delete(table, &self[*key]),
                Operation::DeleteRange(range) => batch.delete_range(table, range),
                Operation::Check { key, condition } => {
                    batch.check(table, &self[*key], condition.condition())
                }
            };
        }
        Ok(batch)
    }

    /// Applies all writes in a transaction that has made `before` writes already. Returns the
    /// number of deleted keys.
    pub(crate) fn apply(
        &self,
        txn: &mut WriteTxn<'_>,
        default: &TableRef,
        before: usize,
    ) -> Outcome<u64> {
        let mut deleted = 0;
        for (nth, (table, operation)) in self.operations.iter().enumerate() {
            let table = table.as_ref().unwrap_or(default).opened()?;
            match operation {
                Operation::Put { key, value, expires_at_ms: None } => {
                    txn.put(&table, &self[*key], &self[*value])?;
                }
                Operation::Put { key, value, expires_at_ms: Some(at) } => {
                    txn.put_until(&table, &self[*key], &self[*value], *at)?;
                }
                Operation::Append { key, value } => {
                    txn.append(&table, &self[*key], &self[*value])?;
                }
                Operation::Delete { key } => deleted += u64::from(txn.delete(&table, &self[*key])?),
                Operation::DeleteRange(range) => deleted += txn.delete_range(&table, range)?,
                Operation::Check { key, condition } => {
                    if !txn.holds(&table, &self[*key], condition.condition())? {
                        let write = before + nth;
                        return Err(nuthatch_store::Error::ConditionUnmet { write }.into());
                    }
                }
            }
        }
        Ok(deleted)
    }

    fn copy(&mut self, bytes: &[u8]) -> Span {
        let start = self.data.len();
        self.data.extend_from_slice(bytes);
        Span { start, end: self.data.len() }
    }
}

fn appending() -> Failure {
    Failure::argument("append needs a transaction of a store in this process")
}
