//! The end of a write transaction, and nested ones.

use super::expiry;
use super::txn::WriteTxn;
use crate::error::Result;
use crate::process::OfProcess;
use crate::read::Read;
use std::rc::Rc;

impl WriteTxn<'_> {
    /// Begins a nested transaction. When it is committed, its writes become part of this one.
    /// Dropping it discards them, and this transaction continues.
    ///
    /// # Errors
    ///
    /// [`Error::Lmdb`](crate::Error::Lmdb) if LMDB cannot begin it, and
    /// [`Error::Forked`](crate::Error::Forked) in a child made by `fork`.
    pub fn nested(&mut self) -> Result<WriteTxn<'_>> {
        self.shared.environment.check_process()?;
        let heed = self.shared.environment.heed();
        let txn = heed.nested_write_txn(&mut self.txn);
        let txn =
            txn.map_err(|e| self.shared.environment.error("begin a nested transaction", e))?;
        Ok(WriteTxn {
            txn: OfProcess::new(txn),
            committed: Rc::clone(&self.committed),
            journal: self.journal.clone(),
            parent: Some(&mut self.journal),
            shared: self.shared,
            now: self.now.clone(),
            locks: None,
        })
    }

    /// Commits the transaction. Returns the sequence number of the last change of the store; see
    /// [`Read::sequence`]. A nested transaction becomes part of its parent.
    ///
    /// # Errors
    ///
    /// - [`Error::Io`](crate::Error::Io) if the commit cannot be written, or if the store's files
    ///   were removed or replaced since they were opened: data written to them is lost when the
    ///   last process closes them. Commits that are not synced detect that within 0.1 s. Moving the
    ///   folder does not matter.
    /// - [`Error::Full`](crate::Error::Full) if the map is full.
    /// - [`Error::Corrupt`](crate::Error::Corrupt) if a page could not be read.
    pub fn commit(mut self) -> Result<u64> {
        self.shared.environment.check_process()?;
        self.check_readable()?;
        if self.parent.is_none() {
            let limit = expiry::SWEEP_AT_COMMIT;
            expiry::sweep(&mut self, limit)?;
        }
        // `locks` is dropped last, also if this fails: variables are dropped in reverse order.
        let Self { locks, mut txn, mut journal, parent, shared, .. } = self;
        let sequence = journal.sequence();
        if parent.is_none() {
            journal.close(shared, &mut txn)?;
        }
        if let Some((_, write_guard)) = &locks {
            shared.environment.check_before_commit(write_guard)?;
        }
        txn.into_inner().commit().map_err(|e| shared.environment.error("commit", e))?;
        if locks.is_some() {
            shared.notify_watches();
        }
        drop(locks);
        if let Some(parent) = parent {
            *parent = journal;
        }
        Ok(sequence)
    }

    /// Discards the transaction, as dropping it does.
    pub fn abort(self) {}
}
