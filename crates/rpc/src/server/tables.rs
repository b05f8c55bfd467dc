//! Open tables by name. Finding one that is open does not block.

use crate::error::{Error, Result};
use nuthatch_store::{Store, Table};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

pub(crate) struct Tables {
    store: Store,
    main: Table,
    opened: RwLock<HashMap<String, Table>>,
}

impl Tables {
    pub(crate) fn new(store: Store) -> Self {
        let main = store.main_table();
        Self { store, main, opened: RwLock::new(HashMap::new()) }
    }

    /// Returns a table that was opened before, or the main one.
    pub(crate) fn opened(&self, name: &str) -> Option<Table> {
        if name.is_empty() {
            return Some(self.main.clone());
        }
        // The map is valid after each statement.
        self.opened.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Returns a table, or an error if it does not exist. Reads the store, so it may block.
    pub(crate) fn find(&self, name: &str) -> Result<Table> {
        if let Some(table) = self.opened(name) {
            return Ok(table);
        }
        let table = self.store.find_table(name)?.ok_or_else(|| Error::no_table(name))?;
        self.note(&table);
        Ok(table)
    }

    pub(crate) fn note(&self, table: &Table) {
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        opened.insert(table.name().to_owned(), table.clone());
    }
}
