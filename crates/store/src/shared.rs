//! The state that all handles of a store share.

use crate::environment::{Dbi, Environment};
use crate::error::{Error, Result};
use crate::follower::Follower;
use crate::options::Durability;
use crate::pool::Pool;
use crate::process::OfProcess;
use crate::table::system_tables::SystemTables;
use crate::table::{Kind, Table};
use heed::MdbError;
use nuthatch_clock::Clock;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The state that all handles of a store share.
pub(crate) struct Shared {
    /// Identifies the store within this process.
    pub(crate) id: u64,
    pub(crate) environment: Environment,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) read_ahead: bool,
    pub(crate) pool: OfProcess<Pool>,
    pub(crate) system_tables: OnceLock<SystemTables>,
    pub(crate) tables: Mutex<HashMap<String, Table>>,
    /// Whether a stamped table was found that this process has not opened.
    pub(crate) has_unopened_tables: AtomicBool,
    /// Wakes watches, while there are some.
    pub(crate) follower: Mutex<Weak<Follower>>,
    pub(crate) watched: AtomicBool,
    /// Number of failed reads for watches that were retried.
    pub(crate) watch_failures: Arc<AtomicU64>,
}

impl Shared {
    /// Returns the data file and its path, for reading it without LMDB.
    pub(crate) fn data(&self) -> (&File, &Path) {
        self.environment.data()
    }

    /// Returns the follower, if there are watches.
    #[cfg(test)]
    pub(crate) fn current_follower(&self) -> Option<Arc<Follower>> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Makes watches check for commits.
    pub(crate) fn notify_watches(&self) {
        if self.watched.load(Ordering::Relaxed) {
            let current = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
            match current.upgrade() {
                Some(follower) => follower.notify(),
                None => self.watched.store(false, Ordering::Relaxed),
            }
        }
    }

    /// Returns the last transaction that new transactions see, and the last one whose root is
    /// written.
    pub(crate) fn last_transaction(&self) -> Result<(u64, u64)> {
        let written = self.environment.info()?.last_txn_id as u64;
        let (txn, _guard) = self.environment.read()?;
        Ok((txn.id() as u64, written))
    }

    /// Returns the system tables, if they exist.
    pub(crate) fn system_tables(&self) -> Result<Option<SystemTables>> {
        self.environment.check()?;
        Ok(self.system_tables.get().copied())
    }

    /// Returns a table that this process has open.
    pub(crate) fn opened(&self, name: &str) -> Option<Table> {
        self.lock_tables().get(name).cloned()
    }

    /// Records that there is a stamped table that this process has not opened.
    pub(crate) fn record_unopened_table(&self) {
        self.has_unopened_tables.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lock_tables(&self) -> MutexGuard<'_, HashMap<String, Table>> {
        // The map is consistent after each statement.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register(&self, name: &str, dbi: Dbi, kind: Kind) -> Table {
        let table = Table::new(self.id, name, dbi, kind);
        self.lock_tables().entry(name.to_owned()).or_insert(table).clone()
    }

    #[cold]
    pub(crate) fn opening_error(&self, name: &str, error: heed::Error) -> Error {
        match error {
            heed::Error::Mdb(MdbError::DbsFull) => {
                let expected = "fewer open tables, or a larger `Options::tables`";
                Error::table(name, expected, "as many as can be open")
            }
            heed::Error::Mdb(MdbError::Incompatible) => {
                Error::table(name, "a table", "a value in the main table")
            }
            error => self.environment.error("open a table", error),
        }
    }

    #[cold]
    pub(crate) fn table_error(
        &self,
        table: &Table,
        operation: &'static str,
        error: heed::Error,
    ) -> Error {
        match error {
            heed::Error::Io(e) if e.kind() == std::io::ErrorKind::InvalidInput => {
                let expected = "a transaction that began after the table was opened";
                Error::table(table.name(), expected, "an earlier one")
            }
            heed::Error::Mdb(MdbError::Incompatible) => {
                let expected = "a key that is not the name of a table";
                Error::table(table.name(), expected, "the name of one")
            }
            heed::Error::Mdb(MdbError::BadDbi) => {
                Error::table(table.name(), "an existing table", "one that was deleted")
            }
            error => self.environment.error(operation, error),
        }
    }
}
