//! A write transaction, and what all its operations use.

use crate::changes::Journal;
use crate::environment::{BarrierGuard, WriteGuard};
use crate::error::Result;
use crate::pages::{Access, Committed, TableId};
use crate::process::OfProcess;
use crate::read::Read;
use crate::read::view::{Pages, View};
use crate::shared::Shared;
use crate::table::Table;
use heed::RwTxn;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

/// A write transaction. Only one is open at a time, in all processes. It sees its own writes; other
/// transactions see them after the commit. Dropping it discards them.
///
/// It belongs to the thread that began it.
pub struct WriteTxn<'s> {
    // Ends before the barrier and the write lock are released: fields are dropped in this order.
    pub(super) txn: OfProcess<RwTxn<'s>>,
    /// The committed pages that it is based on. Those that LMDB follows are checked before.
    pub(super) committed: Rc<Committed>,
    pub(super) journal: Journal,
    /// The journal of the transaction that this one is nested in.
    pub(super) parent: Option<&'s mut Journal>,
    pub(super) shared: &'s Shared,
    pub(super) now: Cell<Option<u64>>,
    /// The count at the remap barrier and the write lock; `None` in a nested transaction.
    pub(super) locks: Option<(BarrierGuard<'s>, WriteGuard<'s>)>,
}

impl<'s> WriteTxn<'s> {
    pub(crate) fn new(
        shared: &'s Shared,
        txn: RwTxn<'s>,
        committed: Rc<Committed>,
        journal: Journal,
        guard: BarrierGuard<'s>,
        write_guard: WriteGuard<'s>,
    ) -> Self {
        let (now, locks) = (Cell::new(None), Some((guard, write_guard)));
        let txn = OfProcess::new(txn);
        Self { txn, committed, journal, parent: None, shared, now, locks }
    }

    /// Returns the number of this transaction, which
    /// [`Written::transaction`](crate::Written::transaction) and
    /// [`Change::transaction`](crate::Change::transaction) have after the commit.
    pub fn id(&self) -> u64 {
        self.txn.id() as u64
    }

    pub(crate) fn parts(&mut self) -> (&'s Shared, &mut RwTxn<'s>, &mut Journal) {
        (self.shared, &mut self.txn, &mut self.journal)
    }

    /// Checks the pages of a system table before a key of it is changed.
    pub(crate) fn check_system_row(
        &self,
        table: TableId<'static>,
        key: &[u8],
        access: Access,
    ) -> Result<()> {
        self.committed.check(&self.shared.environment, table, Some(key), access)
    }

    /// Deletes a row from its table. Leaves its entry in the expiry table, and adds nothing to the
    /// journal.
    pub(crate) fn delete_row(&mut self, table: &Table, key: &[u8]) -> Result<bool> {
        let dbi = table.dbi(self.shared.id)?;
        self.shared.environment.check_process()?;
        self.committed.check(
            &self.shared.environment,
            TableId::of(table),
            Some(key),
            Access::Delete,
        )?;
        let deleted = dbi.delete(&mut self.txn, key);
        deleted.map_err(|e| self.shared.table_error(table, "delete", e))
    }

    /// Adds the deletion of a key to the journal.
    pub(crate) fn journal_delete(
        &mut self,
        table: &Table,
        key: &[u8],
        expired: bool,
    ) -> Result<()> {
        if self.journal.keeps() {
            let number = self.journal.next();
            self.journal.delete(self.shared, &mut self.txn, table, key, number, expired)?;
        }
        Ok(())
    }
}

impl Read for WriteTxn<'_> {
    fn view(&self) -> View<'_> {
        View::new(&self.txn, self.shared, &self.now, Pages::Write(&self.committed))
    }

    fn sequence(&self) -> Result<u64> {
        Ok(self.journal.sequence())
    }
}

impl fmt::Debug for WriteTxn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTxn").field("id", &self.id()).finish_non_exhaustive()
    }
}
