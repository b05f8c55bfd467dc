//! Tables by name, and what they are in a store of this process.

use crate::failure::{Failure, Outcome};
use crate::own::PerProcess;
use nuthatch_store::{Kind, Store, Table};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The table that is meant unless another one is named, as on the command line.
pub(crate) const DEFAULT: &str = "default";

/// A table of a store, opened when it is first needed.
#[derive(Clone)]
pub(crate) struct TableRef(Arc<Named>);

struct Named {
    /// Empty for the main table.
    name: String,
    /// What it must keep with each value; `None` where that does not matter.
    kind: Option<Kind>,
    /// In a store of this process, once it is opened.
    opened: PerProcess<OnceLock<Table>>,
    /// On a server: nothing needs to be done before it is used.
    there: AtomicBool,
}

impl TableRef {
    pub(crate) fn new(name: String, kind: Option<Kind>) -> Self {
        let there = AtomicBool::new(name.is_empty());
        Self(Arc::new(Named { name, kind, opened: PerProcess::default(), there }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        self.0.kind
    }

    /// The table of a store, which is made if it is not there and can be.
    pub(crate) fn open(&self, store: &Store) -> Outcome<Table> {
        if let Some(table) = self.0.opened.here().get() {
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
        Ok(self.0.opened.here().get_or_init(|| table).clone())
    }

    /// The table of a store, if it is there.
    pub(crate) fn find(&self, store: &Store) -> Outcome<Table> {
        if let Some(table) = store.find_table(self.name())? {
            Ok(self.0.opened.here().get_or_init(|| table).clone())
        } else {
            let name = self.name().escape_debug();
            let message = format!("expected a table \"{name}\", found none");
            Err(Failure::new("no-table", message))
        }
    }

    /// The table within a transaction, which must know it since before it began.
    pub(crate) fn opened(&self) -> Outcome<Table> {
        self.0.opened.here().get().cloned().ok_or_else(|| {
            let name = self.name().escape_debug();
            let message = format!("table \"{name}\": open it before the transaction begins");
            Failure::new("table", message)
        })
    }

    /// Whether a server may have to be asked to make it first.
    pub(crate) fn may_be_missing(&self) -> bool {
        !self.0.there.load(Ordering::Relaxed)
    }

    pub(crate) fn is_there(&self) {
        self.0.there.store(true, Ordering::Relaxed);
    }
}
