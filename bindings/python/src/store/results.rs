//! Python classes for results of stores: plain objects with fields.

use crate::convert::repr_fields;
use nuthatch_store::Written as StoreWritten;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// The result of committed writes.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Number of the transaction that committed the writes.
    transaction: u64,
    /// Sequence number of the last of these changes. A watch can continue after it.
    sequence: u64,
    /// Number of keys that the writes deleted.
    deleted: u64,
}

/// A value with its version and time of expiry.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The value.
    pub(crate) value: Vec<u8>,
    /// Sequence number of the change that wrote the value; `None` in a plain table.
    pub(crate) version: Option<u64>,
    /// Time of expiry in seconds since 1970; `None` if the row does not expire.
    pub(crate) expires_at: Option<f64>,
}

/// A committed change.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Sequence number of the change, greater than those of all earlier changes.
    sequence: u64,
    /// Number of the transaction that made the change.
    transaction: u64,
    /// The kind of the change: `put`, `delete` or `expire`.
    operation: &'static str,
    /// Name of the table; empty for the main table.
    table: String,
    /// The key.
    key: Vec<u8>,
    /// The new value; `None` if the change removed the row.
    value: Option<Vec<u8>>,
    /// Time of expiry in seconds since 1970; `None` if the row does not expire.
    expires_at: Option<f64>,
}

/// Sizes and counters of a store.
#[pyclass(frozen, get_all, module = "nuthatch")]
#[derive(Clone, Debug)]
pub(crate) struct Stat {
    /// Size of a page in bytes.
    page_bytes: u64,
    /// Length of the memory map in bytes: the file can grow up to it without moving the map.
    map_bytes: u64,
    /// Bytes up to the last page in use, including free pages before it.
    used_bytes: u64,
    /// Size of the file in bytes.
    file_bytes: u64,
    /// Bytes of free pages, including those that become reusable when older readers end.
    free_bytes: u64,
    /// Number of the last committed transaction.
    transaction: u64,
    /// Number of reader slots that are in use or were used, in all processes.
    readers: u32,
    /// Maximum number of reader slots.
    max_readers: u32,
    /// Number of open transactions in the process that has the store open.
    open_transactions: u64,
    /// Sequence number of the last change.
    sequence: u64,
    /// Sequence number of the oldest kept change; `None` if no changes are kept.
    oldest_change: Option<u64>,
    /// The tables by name. The name of the main table is empty.
    tables: BTreeMap<String, TableStat>,
}

/// Sizes and counters of a table.
#[pyclass(frozen, get_all, module = "nuthatch")]
#[derive(Clone, Debug)]
pub(crate) struct TableStat {
    /// Name of the table; empty for the main table.
    name: String,
    /// Whether rows have a version and a time of expiry.
    stamped: bool,
    /// Number of rows, including expired rows that were not swept yet.
    entries: u64,
    /// Number of levels of the tree.
    depth: u32,
    /// Number of branch pages.
    branch_pages: u64,
    /// Number of leaf pages, which contain rows.
    leaf_pages: u64,
    /// Number of overflow pages, which contain long values.
    overflow_pages: u64,
}

/// The result of the verification of an undamaged store.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    /// Number of the last transaction in the verified state.
    transaction: u64,
    /// Pages of the file, including the two meta pages.
    pages: u64,
    /// Number of free pages.
    free_pages: u64,
    /// Pages that are neither in use nor free. They waste space but are no damage.
    lost_pages: u64,
    /// Number of tables, including the main table and system tables.
    tables: u64,
    /// Number of rows in all tables, including system tables and expired rows.
    entries: u64,
}

/// The result of a compaction.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// Size of the file before the compaction, in bytes.
    before_bytes: u64,
    /// Size of the file after the compaction, in bytes.
    after_bytes: u64,
}

repr_fields! {
    Written: transaction sequence deleted;
    Entry: value version expires_at;
    Change: sequence transaction operation table key value expires_at;
    Stat: page_bytes map_bytes used_bytes file_bytes free_bytes transaction readers max_readers
        open_transactions sequence oldest_change tables;
    TableStat: name stamped entries depth branch_pages leaf_pages overflow_pages;
    Verified: transaction pages free_pages lost_pages tables entries;
    Compacted: before_bytes after_bytes;
}

impl From<StoreWritten> for Written {
    fn from(written: StoreWritten) -> Self {
        let StoreWritten { transaction, sequence, deleted } = written;
        Self { transaction, sequence, deleted }
    }
}

impl From<nuthatch_store::Change> for Change {
    fn from(change: nuthatch_store::Change) -> Self {
        let nuthatch_store::Change { sequence, transaction, operation, table, key, value, .. } =
            change;
        Self {
            sequence,
            transaction,
            operation: operation.name(),
            table,
            key,
            value: (operation == nuthatch_store::Operation::Put).then_some(value),
            expires_at: crate::convert::unix_seconds(change.expires_at_ms),
        }
    }
}

impl Stat {
    pub(crate) fn of(
        stat: nuthatch_store::Stat,
        oldest_change: Option<u64>,
        tables: Vec<TableStat>,
    ) -> Self {
        Self {
            page_bytes: stat.page_bytes,
            map_bytes: stat.map_bytes,
            used_bytes: stat.used_bytes,
            file_bytes: stat.file_bytes,
            free_bytes: stat.free_bytes,
            transaction: stat.transaction,
            readers: stat.readers,
            max_readers: stat.max_readers,
            open_transactions: stat.open_transactions,
            sequence: stat.sequence,
            oldest_change,
            tables: tables.into_iter().map(|table| (table.name.clone(), table)).collect(),
        }
    }
}

impl From<nuthatch_rpc::StoreStat> for Stat {
    fn from(stat: nuthatch_rpc::StoreStat) -> Self {
        let tables = stat.tables.into_iter().map(|table| {
            let stamped = table.kind == nuthatch_store::Kind::Stamped;
            TableStat::of(table.name, stamped, table.stat)
        });
        Self::of(stat.store, stat.oldest_change, tables.collect())
    }
}

impl TableStat {
    pub(crate) fn of(name: String, stamped: bool, stat: nuthatch_store::TableStat) -> Self {
        let nuthatch_store::TableStat { entries, depth, .. } = stat;
        let nuthatch_store::TableStat { branch_pages, leaf_pages, overflow_pages, .. } = stat;
        Self { name, stamped, entries, depth, branch_pages, leaf_pages, overflow_pages }
    }
}

impl From<nuthatch_store::Verified> for Verified {
    fn from(verified: nuthatch_store::Verified) -> Self {
        let nuthatch_store::Verified { transaction, pages, free_pages, .. } = verified;
        let nuthatch_store::Verified { lost_pages, tables, entries, .. } = verified;
        Self { transaction, pages, free_pages, lost_pages, tables, entries }
    }
}

impl From<nuthatch_store::Compacted> for Compacted {
    fn from(compacted: nuthatch_store::Compacted) -> Self {
        let nuthatch_store::Compacted { before_bytes, after_bytes } = compacted;
        Self { before_bytes, after_bytes }
    }
}
