//! What stores answer: plain objects with fields.

use crate::shown::shown;
use nuthatch_store::Written as StoreWritten;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// What became of writes that were committed.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The transaction they were committed with.
    transaction: u64,
    /// The number of the last of these changes: a watch can go on after it.
    sequence: u64,
    /// How many keys they deleted.
    deleted: u64,
}

/// A value with what a stamped table keeps about it.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The value.
    pub(crate) value: Vec<u8>,
    /// The number of the change that wrote it; `None` in a plain table.
    pub(crate) version: Option<u64>,
    /// When it expires, as `time.time()` counts; `None` for never.
    pub(crate) expires_at: Option<f64>,
}

/// A committed change.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Its number: greater than those of all changes before it.
    sequence: u64,
    /// The transaction it belongs to.
    transaction: u64,
    /// `put`, `delete` or `expire`.
    act: &'static str,
    /// The name of the table; empty for the main one.
    table: String,
    /// The key.
    key: Vec<u8>,
    /// The new value; `None` where there is none any more.
    value: Option<Vec<u8>>,
    /// When it expires, as `time.time()` counts; `None` for never.
    expires_at: Option<f64>,
}

/// What a store tells of itself.
#[pyclass(frozen, get_all, module = "nuthatch")]
#[derive(Clone, Debug)]
pub(crate) struct Stat {
    /// Bytes of a page.
    page_bytes: u64,
    /// Bytes of the addresses that the map has.
    map_bytes: u64,
    /// Bytes up to the last page that is in use.
    used_bytes: u64,
    /// Bytes of the file.
    file_bytes: u64,
    /// Bytes of pages that can be used again.
    free_bytes: u64,
    /// The number of the last transaction that was committed.
    transaction: u64,
    /// Slots of readers in use, or used before, in all processes.
    readers: u32,
    /// Slots of readers that there are.
    readers_most: u32,
    /// Transactions that are open in the process of the store.
    open_transactions: u64,
    /// The number of the last change.
    sequence: u64,
    /// The number of the oldest change that is kept; `None` when none are.
    oldest_change: Option<u64>,
    /// The tables by name; the main one has an empty name.
    tables: BTreeMap<String, TableStat>,
}

/// What a table tells of itself.
#[pyclass(frozen, get_all, module = "nuthatch")]
#[derive(Clone, Debug)]
pub(crate) struct TableStat {
    /// The name; empty for the main one.
    name: String,
    /// Whether it keeps a version and a time of expiry with each value.
    stamped: bool,
    /// Rows, those among them that have expired and were not swept yet.
    entries: u64,
    /// Levels of the tree.
    depth: u32,
    /// Pages that lead to others.
    branch_pages: u64,
    /// Pages with rows.
    leaf_pages: u64,
    /// Pages with long values.
    overflow_pages: u64,
}

/// What a verified store has.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    /// The number of the transaction whose state was verified.
    transaction: u64,
    /// Pages of the file, the two meta pages among them.
    pages: u64,
    /// Pages that can be used again.
    free_pages: u64,
    /// Pages that are neither in use nor free: lost room, and no damage.
    lost_pages: u64,
    /// Tables, the main one among them.
    tables: u64,
    /// Rows of all tables.
    entries: u64,
}

/// What `compact` did.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// Bytes of the file before.
    before_bytes: u64,
    /// Bytes of the file now.
    after_bytes: u64,
}

shown! {
    Written: transaction sequence deleted;
    Entry: value version expires_at;
    Change: sequence transaction act table key value expires_at;
    Stat: page_bytes map_bytes used_bytes file_bytes free_bytes transaction readers readers_most
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
        let nuthatch_store::Change { sequence, transaction, act, table, key, value, .. } = change;
        Self {
            sequence,
            transaction,
            act: act.name(),
            table,
            key,
            value: (act == nuthatch_store::Act::Put).then_some(value),
            expires_at: crate::times::unix_seconds(change.expires_at_ms),
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
            readers_most: stat.readers_most,
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
