//! Statistics of a store and its tables.

use crate::error::{Error, Result};
use crate::read::Read;
use crate::store::Store;
use crate::table::Table;

/// Statistics of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Length of a page in bytes.
    pub page_bytes: u64,
    /// Length of the map in bytes: the file can grow up to it without moving the map.
    pub map_bytes: u64,
    /// Bytes up to the last page in use, including free pages before it.
    pub used_bytes: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Bytes of free pages, including those that become reusable when older readers end.
    pub free_bytes: u64,
    /// The number of the last committed transaction.
    pub transaction: u64,
    /// Number of reader slots that are in use or were used, in all processes.
    pub readers: u32,
    /// Maximum number of reader slots.
    pub max_readers: u32,
    /// Number of open transactions of this process.
    pub open_transactions: u64,
    /// The sequence number of the last change.
    pub sequence: u64,
}

/// Statistics of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStat {
    /// Number of rows, including expired ones that were not swept yet.
    pub entries: u64,
    /// Number of levels of the tree.
    pub depth: u32,
    /// Number of branch pages.
    pub branch_pages: u64,
    /// Number of leaf pages.
    pub leaf_pages: u64,
    /// Number of overflow pages, which have long values.
    pub overflow_pages: u64,
}

/// What a store uses of its map and of its reader slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes up to the last page in use, including free pages before it.
    pub used_bytes: u64,
    /// Length of the map in bytes: the file can grow up to it without moving the map.
    pub map_bytes: u64,
    /// Number of reader slots that are in use or were used, in all processes.
    pub readers: u32,
    /// Maximum number of reader slots.
    pub max_readers: u32,
}

impl Store {
    /// Returns what the store uses of its map and of its reader slots. Takes constant time and no
    /// reader slot.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child process.
    pub fn usage(&self) -> Result<Usage> {
        let environment = &self.0.environment;
        let info = environment.info()?;
        let page_bytes = u64::from(environment.page_size());
        Ok(Usage {
            used_bytes: (info.last_page_number as u64 + 1) * page_bytes,
            map_bytes: info.map_size as u64,
            readers: info.number_of_readers,
            max_readers: info.maximum_number_of_readers,
        })
    }

    /// Returns statistics of the store. Reads the list of free pages, so it takes time proportional
    /// to its length.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the list of free pages or the settings are damaged, and errors of a
    /// read transaction: see [`read`](Self::read).
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
            free_bytes: crate::file::walk::free_pages(file, path, meta)? * page_bytes,
            transaction: txn.id(),
            readers: info.number_of_readers,
            max_readers: info.maximum_number_of_readers,
            open_transactions,
            sequence,
        })
    }

    /// Returns statistics of a table.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a page is damaged, [`Error::Table`] if the table belongs to another
    /// store or does not exist any more, and errors of a read transaction: see
    /// [`read`](Self::read).
    pub fn table_stat(&self, table: &Table) -> Result<TableStat> {
        let dbi = table.dbi(self.0.id)?;
        let txn = self.read()?;
        let view = txn.view();
        view.check_path_to(table.name())?;
        let stat = dbi.stat(view.txn);
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
