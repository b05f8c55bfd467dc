//! What a store tells of itself.

use crate::error::{Error, Result};
use crate::read::Read;
use crate::store::Store;
use crate::table::Table;

/// What a store tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of the addresses that the map has: how far the file can grow without moving it.
    pub map_bytes: u64,
    /// Bytes up to the last page that is in use, free pages among them.
    pub used_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of pages that can be used again, now or when older readers are gone.
    pub free_bytes: u64,
    /// The number of the last transaction that was committed.
    pub transaction: u64,
    /// Slots of readers in use, or used before, in all processes.
    pub readers: u32,
    /// Slots of readers that there are.
    pub readers_most: u32,
    /// Transactions that are open in this process.
    pub open_transactions: u64,
    /// The number of the last change.
    pub sequence: u64,
}

/// What a table tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStat {
    /// Rows, those among them that have expired and were not swept yet.
    pub entries: u64,
    /// Levels of the tree.
    pub depth: u32,
    /// Pages that lead to others.
    pub branch_pages: u64,
    /// Pages with rows.
    pub leaf_pages: u64,
    /// Pages with long values.
    pub overflow_pages: u64,
}

impl Store {
    /// What the store tells of itself.
    pub fn stat(&self) -> Result<Stat> {
        let environment = &self.0.environment;
        let open_transactions = environment.open_transactions() as u64;
        let (txn, meta) = self.with_root()?;
        let sequence = txn.sequence()?;
        let info = environment.info()?;
        let (file, path) = self.0.data();
        let file_bytes = file.metadata().map_err(|e| Error::io(path, "length", e))?.len();
        let page_bytes = u64::from(environment.page_size());
        Ok(Stat {
            page_bytes,
            map_bytes: info.map_size as u64,
            used_bytes: (info.last_page_number as u64 + 1) * page_bytes,
            file_bytes,
            free_bytes: crate::verify::free_pages(&self.0, meta)? * page_bytes,
            transaction: txn.id(),
            readers: info.number_of_readers,
            readers_most: info.maximum_number_of_readers,
            open_transactions,
            sequence,
        })
    }

    /// What a table tells of itself.
    pub fn table_stat(&self, table: &Table) -> Result<TableStat> {
        let bare = table.bare(self.0.id)?;
        let txn = self.read()?;
        let view = txn.view();
        view.check_way_to(table.name())?;
        let stat = bare.stat(view.txn);
        let stat = stat.map_err(|e| self.0.table_error(table, "stat", e))?;
        Ok(TableStat {
            entries: stat.entries as u64,
            depth: stat.depth,
            branch_pages: stat.branch_pages as u64,
            leaf_pages: stat.leaf_pages as u64,
            overflow_pages: stat.overflow_pages as u64,
        })
    }
}
