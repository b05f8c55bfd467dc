//! References to tables by name, with the open table for a store in this process.

use crate::failure::{Failure, Outcome};
use crate::runtime::PerProcess;
use nuthatch_store::{Kind, Store, Table};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Name of the table that calls use by default, as on the command line.
pub(crate) const DEFAULT: &str = "default";

/// A reference to a table, which is opened on first use.
#[derive(Clone)]
pub(crate) struct TableRef(Arc<TableState>);

struct TableState {
    /// Empty for the main table.
    name: String,
    /// The required kind; `None` if any kind is accepted.
    kind: Option<Kind>,
    /// The open table of a store in this process.
    opened: PerProcess<OnceLock<Table>>,
    /// Whether the table of a server can be used without creating it first.
    exists_remotely: AtomicBool,
}

impl TableRef {
    pub(crate) fn new(name: String, kind: Option<Kind>) -> Self {
        let exists_remotely = AtomicBool::new(name.is_empty());
        Self(Arc::new(TableState { name, kind, opened: PerProcess::default(), exists_remotely }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        self.0.kind
    }

    /// Returns the table of a store. Creates it if it does not exist and the store allows it.
    pub(crate) fn open(&self, store: &Store) -> Outcome<Table> {
        if let Some(table) = self.0.opened.in_process().get() {
            return Ok(table.clone());
        }
        let (name, kind) = (self.name(), self.0.kind);
        let table = match (name, kind) {
            ("", _) => store.main_table(),
            (name, Some(kind)) => store.table_of(name, kind)?,
            (name, None) => match store.find_table(name)? {
                Some(table) => table,
                None => store.table(name)?,
            },
        };
        Ok(self.0.opened.in_process().get_or_init(|| table).clone())
    }

    /// Returns the table of a store; fails if it does not exist.
    pub(crate) fn find(&self, store: &Store) -> Outcome<Table> {
        if let Some(table) = store.find_table(self.name())? {
            Ok(self.0.opened.in_process().get_or_init(|| table).clone())
        } else {
            let name = self.name().escape_debug();
            let message = format!("expected a table \"{name}\", found none");
            Err(Failure::new("no-table", message))
        }
    }

    /// Returns the table within a transaction; fails if it was not opened before the transaction
    /// began.
    pub(crate) fn opened(&self) -> Outcome<Table> {
        self.0.opened.in_process().get().cloned().ok_or_else(|| {
            let name = self.name().escape_debug();
            let message = format!("table \"{name}\": open it before the transaction begins");
            Failure::new("table", message)
        })
    }

    /// Returns whether the table may have to be created on the server first.
    pub(crate) fn may_be_missing(&self) -> bool {
        !self.0.exists_remotely.load(Ordering::Relaxed)
    }

    pub(crate) fn note_exists(&self) {
        self.0.exists_remotely.store(true, Ordering::Relaxed);
    }
}
