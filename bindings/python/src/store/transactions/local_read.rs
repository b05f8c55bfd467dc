//! Read transactions of a store in this process.

use super::txn_view::TxnView;
use crate::failure::{Failure, Outcome};
use crate::store::engine::{Local, StoreUser, TableRef};
use nuthatch_store::{Read, ReadTxn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A read transaction of a store in this process, until it ends.
pub(crate) struct LocalReadTxn(Mutex<Option<ReadTxn<'static>>>);

impl LocalReadTxn {
    /// Begins a transaction, which ends when the store is closed.
    pub(super) fn begin(local: &Local, table: &TableRef) -> Outcome<Arc<Self>> {
        let store = local.store()?;
        table.open(&store)?;
        let txn = Arc::new(Self(Mutex::new(Some(store.read_owned()?))));
        let user: Arc<dyn StoreUser> = Arc::clone(&txn) as Arc<dyn StoreUser>;
        local.add_user(Arc::downgrade(&user));
        Ok(txn)
    }

    /// Runs `job` on the transaction; fails if it has ended.
    pub(crate) fn with<T>(&self, job: impl FnOnce(&TxnView<'_>) -> Outcome<T>) -> Outcome<T> {
        match &*self.lock() {
            Some(txn) => job(&TxnView(txn.view())),
            None => Err(Failure::closed("read transaction")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReadTxn<'static>>> {
        // A panic does not leave a read transaction in an invalid state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreUser for LocalReadTxn {
    fn release(&self) {
        let ended = self.lock().take();
        drop(ended);
    }
}
