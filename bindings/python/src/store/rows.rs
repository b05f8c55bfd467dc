//! Rows of a batch: in the memory map of the store, copied, or received from a server.

use super::engine::{ScanOptions, StoreUser};
use crate::failure::Outcome;
use nuthatch_store::{Read, Row, Table};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Copied rows, in one contiguous buffer.
#[derive(Default)]
pub(crate) struct CopiedRows {
    /// Keys and values, one after the other.
    data: Vec<u8>,
    spans: Vec<RowSpan>,
    transaction: u64,
    sequence: u64,
}

/// The location of a row: a key followed by its value.
struct RowSpan {
    start: usize,
    key_len: u32,
    value_len: u32,
}

impl CopiedRows {
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.data.len();
        // Lengths in a store fit into 32 bits.
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        self.data.extend_from_slice(key);
        self.data.extend_from_slice(value);
        self.spans.push(RowSpan { start, key_len, value_len });
    }

    pub(crate) fn with_position(self, transaction: u64, sequence: u64) -> Self {
        Self { transaction, sequence, ..self }
    }

    /// Copies the first rows of a scan within a transaction.
    pub(crate) fn read(txn: &impl Read, table: &Table, options: &ScanOptions) -> Outcome<Self> {
        let (scan, mut rows) = (options.scan(), Self::default());
        let max_rows = options.batch_rows.unwrap_or(nuthatch_store::Scan::BATCH_ROWS).max(1);
        let bytes = options.batch_bytes.unwrap_or(nuthatch_store::Scan::BATCH_BYTES);
        txn.scan(table, &scan)?.visit(|key, value| {
            rows.push(key, value);
            rows.spans.len() < max_rows && rows.data.len() < bytes
        })?;
        Ok(rows)
    }

    fn copy(mapped: &nuthatch_store::RowBatch) -> Self {
        let mut rows = Self::default();
        mapped.iter().for_each(|(key, value)| rows.push(key, value));
        // The sequence number is 0 if the transaction cannot read it.
        rows.with_position(mapped.transaction(), mapped.sequence().unwrap_or_default())
    }

    fn row(&self, index: usize) -> Option<Row<'_>> {
        let RowSpan { start, key_len, value_len } = self.spans.get(index)?;
        let value = start + *key_len as usize;
        let end = value + *value_len as usize;
        Some((self.data.get(*start..value)?, self.data.get(value..end)?))
    }
}

/// The rows of a batch, and the owner of their memory.
#[derive(Clone)]
pub(crate) enum RowData {
    /// Rows in the memory map of a store, which the read transaction of their scan protects.
    Mapped(Arc<nuthatch_store::RowBatch>),
    Copied(Arc<CopiedRows>),
    /// Rows that a server sent.
    Received(Arc<nuthatch_rpc::RowBatch>),
}

impl RowData {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Mapped(rows) => rows.len(),
            Self::Copied(rows) => rows.spans.len(),
            Self::Received(rows) => rows.len(),
        }
    }

    pub(crate) fn row(&self, index: usize) -> Option<Row<'_>> {
        match self {
            Self::Mapped(rows) => rows.get(index),
            Self::Copied(rows) => rows.row(index),
            Self::Received(rows) => rows.get(index),
        }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).map_while(|index| self.row(index))
    }

    pub(crate) fn transaction(&self) -> u64 {
        match self {
            Self::Mapped(rows) => rows.transaction(),
            Self::Copied(rows) => rows.transaction,
            Self::Received(rows) => rows.transaction(),
        }
    }

    pub(crate) fn sequence(&self) -> Outcome<u64> {
        Ok(match self {
            Self::Mapped(rows) => rows.sequence()?,
            Self::Copied(rows) => rows.sequence,
            Self::Received(rows) => rows.sequence(),
        })
    }
}

/// The rows of a batch in Python. A store that is closed replaces rows in its map by copies.
pub(crate) struct SharedRows(Mutex<RowData>);

impl SharedRows {
    pub(crate) fn new(data: RowData) -> Arc<Self> {
        Arc::new(Self(Mutex::new(data)))
    }

    pub(crate) fn data(&self) -> RowData {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, RowData> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreUser for SharedRows {
    /// Copies rows that are in the memory map. Existing buffers remain valid.
    fn release(&self) {
        if let RowData::Mapped(mapped) = self.data() {
            let copied = RowData::Copied(Arc::new(CopiedRows::copy(&mapped)));
            let before = std::mem::replace(&mut *self.lock(), copied);
            drop(before);
        }
    }
}
