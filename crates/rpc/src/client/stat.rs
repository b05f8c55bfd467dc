//! Statistics of a store.

use crate::error::Result;
use crate::messages::convert::{self, required};
use crate::messages::proto;
use nuthatch_store::{Kind, Stat, TableStat};

/// Statistics of a store and of its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStat {
    /// Statistics of the whole store.
    pub store: Stat,
    /// The sequence number of the oldest kept change; `None` if no changes are kept.
    pub oldest_change: Option<u64>,
    /// The tables: the main table first, then the others in name order.
    pub tables: Vec<TableInfo>,
}

/// Statistics of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// The name; empty for the main table.
    pub name: String,
    /// The kind of the table.
    pub kind: Kind,
    /// Statistics of the table.
    pub stat: TableStat,
}

impl StoreStat {
    pub(super) fn of(response: proto::StatResponse) -> Result<Self> {
        let store = Stat {
            page_bytes: response.page_bytes,
            map_bytes: response.map_bytes,
            used_bytes: response.used_bytes,
            file_bytes: response.file_bytes,
            free_bytes: response.free_bytes,
            transaction: response.transaction,
            readers: response.readers,
            max_readers: response.max_readers,
            open_transactions: response.open_transactions,
            sequence: response.sequence,
        };
        let tables = response.tables.into_iter().map(TableInfo::of).collect::<Result<_>>()?;
        Ok(Self { store, oldest_change: response.oldest_change, tables })
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
