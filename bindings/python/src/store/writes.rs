//! Writes that are collected for a store, with their bytes in one buffer.

use super::condition::Wanted;
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
    acts: Vec<(Option<TableRef>, Act)>,
}

#[derive(Clone)]
enum Act {
    Put { key: Span, value: Span, expires_at_ms: Option<u64> },
    Append { key: Span, value: Span },
    Delete { key: Span },
    DeleteRange(Range),
    Check { key: Span, wanted: Wanted },
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
        self.acts.push((table, Act::Put { key, value, expires_at_ms }));
    }

    pub(crate) fn append(&mut self, table: Option<TableRef>, key: &[u8], value: &[u8]) {
        let (key, value) = (self.copy(key), self.copy(value));
        self.acts.push((table, Act::Append { key, value }));
    }

    pub(crate) fn delete(&mut self, table: Option<TableRef>, key: &[u8]) {
        let key = self.copy(key);
        self.acts.push((table, Act::Delete { key }));
    }

    pub(crate) fn delete_range(&mut self, table: Option<TableRef>, range: Range) {
        self.acts.push((table, Act::DeleteRange(range)));
    }

    pub(crate) fn check(&mut self, table: Option<TableRef>, key: &[u8], wanted: Wanted) {
        let key = self.copy(key);
        self.acts.push((table, Act::Check { key, wanted }));
    }

    pub(crate) fn len(&self) -> usize {
        self.acts.len()
    }

    /// Returns the approximate memory of the writes in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len() + self.acts.len() * WRITE_LEN
    }

    /// Returns the table of each write: the named one, or the default.
    pub(crate) fn tables<'w>(
        &'w self,
        default: &'w TableRef,
    ) -> impl Iterator<Item = &'w TableRef> {
        self.acts.iter().map(|(table, _)| table.as_ref().unwrap_or(default))
    }

    /// Converts the writes into a batch of a store in this process.
    pub(crate) fn batch(
        &self,
        store: &Store,
        default: &TableRef,
    ) -> Outcome<nuthatch_store::Batch> {
        let mut batch = nuthatch_store::Batch::new();
        for (table, act) in &self.acts {
            let table = table.as_ref().unwrap_or(default).open(store)?;
            batch = match act {
                Act::Put { key, value, expires_at_ms: None } => {
                    batch.put(&table, &self[*key], &self[*value])
                }
                Act::Put { key, value, expires_at_ms: Some(at) } => {
                    batch.put_until(&table, &self[*key], &self[*value], *at)
                }
                Act::Append { .. } => return Err(appending()),
                Act::Delete { key } => batch.delete(&table, &self[*key]),
                Act::DeleteRange(range) => batch.delete_range(&table, range.clone()),
                Act::Check { key, wanted } => batch.check(&table, &self[*key], wanted.condition()),
            };
        }
        Ok(batch)
    }

    /// Converts the writes into a batch of a server.
    pub(crate) fn remote_batch(&self, default: &TableRef) -> Outcome<nuthatch_rpc::Batch> {
        let mut batch = nuthatch_rpc::Batch::new();
        for (table, act) in &self.acts {
            let table = table.as_ref().unwrap_or(default).name();
            batch = match act {
                Act::Put { key, value, expires_at_ms: None } => {
                    batch.put(table, &self[*key], &self[*value])
                }
                Act::Put { key, value, expires_at_ms: Some(at) } => {
                    batch.put_until(table, &self[*key], &self[*value], *at)
                }
                Act::Append { .. } => return Err(appending()),
                Act::Delete { key } => batch.delete(table, &self[*key]),
                Act::DeleteRange(range) => batch.delete_range(table, range),
                Act::Check { key, wanted } => batch.check(table, &self[*key], wanted.condition()),
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
        for (nth, (table, act)) in self.acts.iter().enumerate() {
            let table = table.as_ref().unwrap_or(default).opened()?;
            match act {
                Act::Put { key, value, expires_at_ms: None } => {
                    txn.put(&table, &self[*key], &self[*value])?;
                }
                Act::Put { key, value, expires_at_ms: Some(at) } => {
                    txn.put_until(&table, &self[*key], &self[*value], *at)?;
                }
                Act::Append { key, value } => txn.append(&table, &self[*key], &self[*value])?,
                Act::Delete { key } => deleted += u64::from(txn.delete(&table, &self[*key])?),
                Act::DeleteRange(range) => deleted += txn.delete_range(&table, range)?,
                Act::Check { key, wanted } => {
                    if !txn.holds(&table, &self[*key], wanted.condition())? {
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
