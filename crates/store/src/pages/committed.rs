//! The committed pages that a write transaction is based on.
//!
//! LMDB never changes a committed page: it copies each page that it changes, and the copies are in
//! its own memory. So a table that the transaction has not changed is read through [`Tree`], as in
//! a read transaction. A table that it has changed is read and written through LMDB, which trusts
//! pages; before LMDB follows committed pages to a key, they are checked here, each once.
//!
//! The path to a key through the committed pages has all committed pages that LMDB reads on its own
//! path, with one exception: LMDB merges a leaf that is almost empty with a sibling. Before a
//! delete that may lead to that, the siblings along the path are checked as well. If consecutive
//! leaves become empty in one transaction, LMDB may merge with a leaf further away, which is not
//! checked.

use super::check::{Access, Branches, CheckedPages};
use super::cursor::Cursor;
use super::page::is_at_or_above;
use super::roots::{Roots, map_of, named};
use super::tree::{Root, Source, Tree};
use crate::environment::Environment;
use crate::error::Result;
use crate::file::corrupt;
use crate::file::layout::tree_record;
use crate::table::Table;
use crate::table::system_tables::layout;
use heed::{AnyTls, RoTxn};
use std::cell::RefCell;
use std::ops::Bound;

/// Identifies a table within a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableId<'n> {
    number: usize,
    name: &'n str,
}

impl TableId<'static> {
    pub(crate) const MAIN: Self = Self { number: 0, name: "" };
    pub(crate) const SETTINGS: Self = Self { number: 1, name: layout::SETTINGS };
    pub(crate) const CHANGES: Self = Self { number: 2, name: layout::CHANGES };
    pub(crate) const EXPIRY: Self = Self { number: 3, name: layout::EXPIRY };
}

impl<'n> TableId<'n> {
    pub(crate) fn name(self) -> &'n str {
        self.name
    }

    pub(crate) fn of(table: &'n Table) -> Self {
        if table.name().is_empty() {
            return TableId::MAIN;
        }
        // Addresses are above the numbers of the system tables.
        Self { number: table.address(), name: table.name() }
    }
}

/// The committed pages that a write transaction, and those nested in it, are based on.
pub(crate) struct Committed {
    roots: Roots,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    tables: Vec<UsedTable>,
    checked: CheckedPages,
}

/// A table that the transaction has used.
struct UsedTable {
    number: usize,
    root: Root,
    is_changed: bool,
    /// The leaf that was checked last.
    last: Option<LastLeaf>,
}

/// A leaf that was checked together with all branches above it. It has the keys from `low` on and
/// below `high`.
struct LastLeaf {
    leaf: u64,
    has_long_values: bool,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

impl LastLeaf {
    fn has(&self, key: Option<&[u8]>) -> bool {
        let Some(key) = key else { return self.high.is_none() };
        self.low.as_deref().is_none_or(|low| is_at_or_above(key, low))
            && self.high.as_deref().is_none_or(|high| !is_at_or_above(key, high))
    }
}

impl Committed {
    /// Finds the pages that a new write transaction is based on.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the meta page is not that of the previous
    /// transaction.
    pub(crate) fn of(environment: &Environment, txn: &RoTxn<'_, AnyTls>) -> Result<Self> {
        // Nothing was committed since: this transaction has the write lock.
        let id = (txn.id() as u64).saturating_sub(1);
        let roots = Roots::of_id(environment, txn, id)?.ok_or_else(|| {
            let expected = format!("a meta page of transaction {id}");
            corrupt(environment.data().1, 0, expected, "another one")
        })?;
        Ok(Self { roots, state: RefCell::default() })
    }

    /// Returns how a table is read.
    pub(crate) fn source<'t>(
        &self,
        environment: &'t Environment,
        table: TableId<'_>,
    ) -> Result<Source<'t>> {
        let mut state = self.state.borrow_mut();
        let at = self.find(environment, &mut state, table)?;
        let used = &state.tables[at];
        let tree = Tree::new(map_of(environment), used.root, environment);
        Ok(if used.is_changed { Source::Changed(tree) } else { Source::Pages(tree) })
    }

    /// Returns whether the main table has a key of this name.
    pub(crate) fn has_table(&self, environment: &Environment, name: &str) -> Result<bool> {
        Ok(self.roots.main(environment).get(name.as_bytes())?.is_some())
    }

    /// Returns a table as it was when the transaction began.
    fn tree_of<'t>(&self, environment: &'t Environment, table: TableId<'_>) -> Result<Tree<'t>> {
        let mut state = self.state.borrow_mut();
        let at = self.find(environment, &mut state, table)?;
        Ok(Tree::new(map_of(environment), state.tables[at].root, environment))
    }

    /// Checks the committed pages that LMDB follows to a key, or to the last key if it is `None`.
    pub(crate) fn check(
        &self,
        environment: &Environment,
        table: TableId<'_>,
        key: Option<&[u8]>,
        access: Access,
    ) -> Result<()> {
        let mut state = self.state.borrow_mut();
        let at = self.find(environment, &mut state, table)?;
        let State { tables, checked } = &mut *state;
        let used = &mut tables[at];
        used.is_changed |= access != Access::Read;
        let tree = Tree::new(map_of(environment), used.root, environment);
        let Some(root) = tree.root() else { return Ok(()) };
        if access != Access::Delete
            && let Some(last) = used.last.as_ref().filter(|last| last.has(key))
        {
            if last.has_long_values {
                tree.check_value(&tree.page(last.leaf)?, key)?;
            }
            return Ok(());
        }
        let leaf = tree.check_pages_to(root, key, access, checked)?;
        if access == Access::Delete && leaf.may_be_sparse {
            tree.check_pages_beside(root, key, checked)?;
        }
        let before = used.last.take();
        if leaf.branches == Branches::Checked {
            let before = before.map_or((None, None), |last| (last.low, last.high));
            used.last = Some(LastLeaf {
                leaf: leaf.number,
                has_long_values: leaf.has_long_values,
                low: copied(before.0, leaf.low),
                high: copied(before.1, leaf.high),
            });
        }
        Ok(())
    }

    /// Checks all committed pages of a table, which LMDB is about to free.
    pub(crate) fn check_all(&self, environment: &Environment, table: TableId<'_>) -> Result<()> {
        self.check(environment, table, None, Access::Delete)?;
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut leaves = Cursor::new(self.tree_of(environment, table)?, all, false)?;
        while leaves.next_sound_leaf()? {}
        Ok(())
    }

    /// Finds a table among those that the transaction has used, or in the main table.
    fn find(
        &self,
        environment: &Environment,
        state: &mut State,
        table: TableId<'_>,
    ) -> Result<usize> {
        if let Some(at) = state.tables.iter().position(|used| used.number == table.number) {
            return Ok(at);
        }
        let root = if table.number == TableId::MAIN.number {
            Some(self.roots.main_root())
        } else {
            let main = self.roots.main(environment);
            if let Some(root) = main.root() {
                let name = table.name.as_bytes();
                // LMDB follows this path when it opens a cursor, and writes there when it commits.
                let access = Access::Put { row_len: name.len() + tree_record::LEN };
                main.check_pages_to(root, Some(name), access, &mut state.checked)?;
            }
            named(main, table.name)?
        };
        // LMDB returns the error for a table that no longer exists.
        let is_changed = root.is_none();
        let root = root.unwrap_or(Root::NONE);
        let used = UsedTable { number: table.number, root, is_changed, last: None };
        state.tables.push(used);
        Ok(state.tables.len() - 1)
    }
}

/// Copies a key, into the memory of `into` if there is one.
fn copied(into: Option<Vec<u8>>, key: Option<&[u8]>) -> Option<Vec<u8>> {
    key.map(|key| {
        let mut copy = into.unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(key);
        copy
    })
}
