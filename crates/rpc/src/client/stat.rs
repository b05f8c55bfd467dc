//! What a store tells of itself.

use crate::error::Result;
use crate::messages::convert::{self, required};
use crate::messages::proto;
use nuthatch_store::{Kind, Stat, TableStat};

/// What a store tells of itself and of its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStat {
    /// The store as a whole.
    pub store: Stat,
    /// The number of the oldest change that is kept; `None` when none are.
    pub oldest_change: Option<u64>,
    /// The tables: the main one first, the others by name.
    pub tables: Vec<TableInfo>,
}

/// What a table tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// The name; empty for the main one.
    pub name: String,
    /// What it keeps with each value.
    pub kind: Kind,
    /// Its figures.
    pub stat: TableStat,
}

impl StoreStat {
    pub(super) fn of(answer: proto::StatResponse) -> Result<Self> {
        let store = Stat {
            page_bytes: answer.page_bytes,
            map_bytes: answer.map_bytes,
            used_bytes: answer.used_bytes,
            file_bytes: answer.file_bytes,
            free_bytes: answer.free_bytes,
            transaction: answer.transaction,
            readers: answer.readers,
            readers_most: answer.readers_most,
            open_transactions: answer.open_transactions,
            sequence: answer.sequence,
        };
        let tables = answer.tables.into_iter().map(TableInfo::of).collect::<Result<_>>()?;
        Ok(Self { store, oldest_change: answer.oldest_change, tables })
    }
}

impl TableInfo {
    fn of(table: proto::TableStat) -> Result<Self> {
        let proto::TableStat { name, kind, entries, depth, .. } = table;
        let proto::TableStat { branch_pages, leaf_pages, overflow_pages, .. } = table;
        let kind = required(convert::kind(kind)?)?;
        let stat = TableStat { entries, depth, branch_pages, leaf_pages, overflow_pages };
        Ok(Self { name, kind, stat })
    }
}
