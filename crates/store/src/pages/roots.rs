//! The roots of the tables that a read transaction sees.

use super::tree::{Root, Tree};
use crate::environment::Environment;
use crate::environment::mapping::Map;
use crate::error::{Error, Result};
use crate::file::layout::{NO_PAGE, tree_record};
use crate::file::meta;
use crate::file::page::{Kind, Page as FilePage};
use crate::file::tree::{RawTree, check_kind, check_record};
use crate::table::Table;
use heed::{AnyTls, RoTxn};
use std::cell::Cell;

/// The maximum number of levels of a tree.
const MAX_DEPTH: usize = 32;
/// Number of tables whose roots a transaction caches: those that it looked up last. A longer list
/// would slow down the start of each transaction.
const REMEMBERED: usize = 2;

/// The roots that a read transaction sees.
pub(crate) struct Roots {
    main: Root,
    /// Root pages by the address of the table, which is stable: the store keeps every opened table.
    /// Zero means none.
    tables: [Cell<(usize, u64)>; REMEMBERED],
}

impl Roots {
    /// Finds the main table as a new transaction sees it. `None` if two other transactions were
    /// committed since: then its meta page was reused, and its pages are read through LMDB.
    pub(crate) fn of(environment: &Environment, txn: &RoTxn<'_, AnyTls>) -> Result<Option<Self>> {
        Self::of_id(environment, txn, txn.id() as u64)
    }

    /// Finds the main table as `of` does, for a transaction that sees the state that transaction
    /// `id` committed.
    pub(super) fn of_id(
        environment: &Environment,
        txn: &RoTxn<'_, AnyTls>,
        id: u64,
    ) -> Result<Option<Self>> {
        let root = match environment.mapping().get(environment.page_size()) {
            Some(map) => main_root(map, id),
            None => locate(environment, txn, id)?,
        };
        Ok(root.map(Self::new))
    }

    /// Finds the main table as `of` does, if the address of the map is known; `None` otherwise.
    #[inline]
    pub(crate) fn known(environment: &Environment, txn: &RoTxn<'_, AnyTls>) -> Option<Self> {
        let map = environment.mapping().get(environment.page_size())?;
        main_root(map, txn.id() as u64).map(Self::new)
    }

    #[inline]
    fn new(main: Root) -> Self {
        Self { main, tables: [const { Cell::new((0, 0)) }; REMEMBERED] }
    }

    /// Returns a table; `None` if the transaction does not see it.
    #[inline]
    pub(crate) fn tree<'t>(
        &self,
        environment: &'t Environment,
        table: &Table,
    ) -> Result<Option<Tree<'t>>> {
        let map = map_of(environment);
        if table.name().is_empty() {
            return Ok(Some(Tree::new(map, self.main, environment)));
        }
        let id = table.address();
        if let Some((_, page)) = self.tables.iter().map(Cell::get).find(|(known, _)| *known == id) {
            return Ok(Some(Tree::new(map, Root { page }, environment)));
        }
        let Some(root) = named(self.main(environment), table.name())? else { return Ok(None) };
        let [last, before] = &self.tables;
        before.set(last.replace((id, root.page)));
        Ok(Some(Tree::new(map, root, environment)))
    }

    /// Returns the main table.
    pub(crate) fn main<'t>(&self, environment: &'t Environment) -> Tree<'t> {
        Tree::new(map_of(environment), self.main, environment)
    }

    /// Returns the root of the main table.
    pub(super) fn main_root(&self) -> Root {
        self.main
    }

    /// Returns a system table.
    pub(crate) fn system_table<'t>(
        &self,
        environment: &'t Environment,
        name: &str,
    ) -> Result<Option<Tree<'t>>> {
        let root = named(self.main(environment), name)?;
        Ok(root.map(|root| Tree::new(map_of(environment), root, environment)))
    }
}

/// Returns the map of the file, if its address is known.
#[inline]
pub(super) fn map_of(environment: &Environment) -> Option<Map<'_>> {
    environment.mapping().get(environment.page_size())
}

/// Returns the root of a table by its name in the main table.
pub(super) fn named(main: Tree<'_>, name: &str) -> Result<Option<Root>> {
    let Some(record) = main.get(name.as_bytes())? else { return Ok(None) };
    check_record(name, record)?;
    Ok(RawTree::read(record).map(|tree| Root::of(&tree)))
}

/// Reads the root of the main table from the meta page of a transaction.
#[inline]
fn main_root(map: Map<'_>, id: u64) -> Option<Root> {
    // The commit after the next one writes this meta page again. It cannot have begun while the
    // other meta page is older than this one.
    let [meta, other] = map.meta_pages(id)?;
    let (root, flags) = meta.main();
    let is_current = meta.transaction() == id && other.transaction() <= id;
    (is_current && flags & tree_record::OTHER_KINDS == 0).then_some(Root { page: root })
}

/// Finds the address of the map, by reading the first row of the main table both from the file and
/// through LMDB. The pages on the path to it are checked before LMDB reads them.
#[cold]
fn locate(environment: &Environment, txn: &RoTxn<'_, AnyTls>, id: u64) -> Result<Option<Root>> {
    let (file, path) = environment.data();
    let found = match meta::read(file, path, Some(id)) {
        Ok(found) => found,
        // The meta page of this transaction may have been reused.
        Err(Error::Corrupt(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(meta) = found else { return Ok(None) };
    check_kind("", &meta.main)?;
    let root = Root::of(&meta.main);
    if root.page == NO_PAGE {
        return Ok(Some(root));
    }
    let mut number = root.page;
    for _ in 0..MAX_DEPTH {
        let page = FilePage::read(file, path, number, meta.page_size)?;
        if page.kind == Kind::Branch {
            number = page.branch(0)?.page;
            continue;
        }
        let offset = page.key_offset(0)?;
        let first = environment.main().first(txn);
        let first = first.map_err(|e| environment.error("find the map", e))?;
        let Some((key, _)) = first.filter(|(key, _)| page.leaf(0).is_ok_and(|l| l.key == *key))
        else {
            let (expected, found) = ("the row that the file has there", "another one");
            return Err(crate::file::corrupt(path, offset, expected, found));
        };
        let len = file.metadata().map_err(|e| Error::io(path, "length", e))?.len();
        let map_size = environment.heed().info().map_size;
        environment.mapping().set_len(len, map_size);
        if let Ok(offset) = usize::try_from(offset) {
            environment.mapping().found(key, offset, map_size);
        }
        return Ok(Some(root));
    }
    Ok(None)
}
