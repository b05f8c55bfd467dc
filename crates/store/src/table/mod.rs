//! Named tables of a store.

pub(crate) mod system_tables;

use crate::environment::Dbi;
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// The maximum length of a table name, in bytes.
pub const MAX_NAME_LEN: usize = 200;
/// The prefix of the names of system tables.
pub(crate) const SYSTEM_PREFIX: &str = "nuthatch.";

/// What a table stores with each value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: values are stored unchanged, and any LMDB program can read them.
    #[default]
    Plain,
    /// A version, which [`Condition::Version`](crate::Condition::Version) compares, and an optional
    /// time of expiry: 16 bytes before each value.
    Stamped,
}

impl Kind {
    /// Returns the name for messages: `plain` or `stamped`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Stamped => "stamped",
        }
    }
}

/// A table of a store: ordered keys of 1 to 511 bytes, each with a value. A handle that can be
/// cloned and shared by all threads.
#[derive(Clone)]
pub struct Table(Arc<Opened>);

struct Opened {
    /// Identifies the store within this process.
    store: u64,
    name: String,
    dbi: Dbi,
    kind: Kind,
}

impl Table {
    pub(crate) fn new(store: u64, name: &str, dbi: Dbi, kind: Kind) -> Self {
        Self(Arc::new(Opened { store, name: name.to_owned(), dbi, kind }))
    }

    /// Returns the name; empty for the main table.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns what the table stores with each value.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub(crate) fn is_stamped(&self) -> bool {
        self.0.kind == Kind::Stamped
    }

    /// Returns a number that is unique among the tables that the store has open.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns LMDB's handle, or an error if the table belongs to another store: heed would panic.
    #[inline]
    pub(crate) fn dbi(&self, store: u64) -> Result<Dbi> {
        if self.0.store == store { Ok(self.0.dbi) } else { Err(self.of_another_store()) }
    }

    #[cold]
    fn of_another_store(&self) -> Error {
        Error::table(self.name(), "a table of this store", "one of another")
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.0.name).field("kind", &self.0.kind).finish()
    }
}

/// Checks a table name of the caller.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME_LEN {
        let (max, found) = (MAX_NAME_LEN as u64, name.len() as u64);
        return Err(Error::Length { what: "table name", min: 1, max, found });
    }
    if name.contains('\0') {
        return Err(Error::table(name, "a name without zero bytes", "one with them"));
    }
    if name.starts_with(SYSTEM_PREFIX) {
        let found = "one that begins with \"nuthatch.\", which is reserved";
        return Err(Error::table(name, "another name", found));
    }
    Ok(())
}
