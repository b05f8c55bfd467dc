//! Named tables of a store.

use crate::environment::Bare;
use crate::error::{Error, Result};
use crate::file::tree::RawTree;
use std::fmt;
use std::sync::Arc;

/// The longest name of a table, in bytes.
pub const NAME_MOST: usize = 200;
/// Names of the store's own tables begin with this.
pub(crate) const OWN_PREFIX: &str = "nuthatch.";

/// What a table keeps with each value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: values lie in the file as they are, and any LMDB program reads them.
    #[default]
    Plain,
    /// A version, which [`Condition::Version`](crate::Condition::Version) compares, and a time at
    /// which the row expires, if it does: 16 bytes before each value.
    Stamped,
}

impl Kind {
    /// The name for messages.
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
    /// The number of the store, among those of this process.
    store: u64,
    name: String,
    bare: Bare,
    kind: Kind,
}

impl Table {
    pub(crate) fn new(store: u64, name: &str, bare: Bare, kind: Kind) -> Self {
        Self(Arc::new(Opened { store, name: name.to_owned(), bare, kind }))
    }

    /// The name; empty for the main table.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it keeps with each value.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub(crate) fn is_stamped(&self) -> bool {
        self.0.kind == Kind::Stamped
    }

    /// Returns a number that no other table has which the store has open.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The table for heed, which panics when it is given one of another environment.
    #[inline]
    pub(crate) fn bare(&self, store: u64) -> Result<Bare> {
        if self.0.store == store { Ok(self.0.bare) } else { Err(self.of_another_store()) }
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

/// A name that users may give.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_MOST {
        let (most, found) = (NAME_MOST as u64, name.len() as u64);
        return Err(Error::Length { what: "table name", least: 1, most, found });
    }
    if name.contains('\0') {
        return Err(Error::table(name, "a name without zero bytes", "one with them"));
    }
    if name.starts_with(OWN_PREFIX) {
        return Err(Error::table(name, "a name of yours", "one that begins with \"nuthatch.\""));
    }
    Ok(())
}

/// What the main table has under a table's name: whether this crate can use that table.
pub(crate) fn check_record(name: &str, record: &[u8]) -> Result<()> {
    let Some(found) = RawTree::read(record) else {
        return Err(Error::table(name, "a table", "a value in the main table"));
    };
    check_kind(name, &found)
}

/// Whether this crate can use a table: one value for each key, in the order of the keys' bytes.
pub(crate) fn check_kind(name: &str, tree: &RawTree) -> Result<()> {
    match tree.other_kind() {
        Some(found) => Err(Error::table(name, "a table of ordered keys and values", found)),
        None => Ok(()),
    }
}
