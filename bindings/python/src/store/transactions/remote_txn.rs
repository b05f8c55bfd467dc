//! Transactions of a server.

use crate::failure::{Failure, Outcome};
use nuthatch_rpc::Txn;

/// A transaction of a server, until it ends. It is taken out during a call. If the call is
/// cancelled, the transaction is dropped, since the next call would receive the response of the
/// cancelled one.
pub(crate) struct RemoteTxn(tokio::sync::Mutex<Option<Txn>>);

impl RemoteTxn {
    pub(super) fn new(txn: Txn) -> Self {
        Self(tokio::sync::Mutex::new(Some(txn)))
    }

    /// Calls the server in the transaction. Waits for a call in progress.
    pub(super) async fn with<T>(
        &self,
        call: impl AsyncFnOnce(&mut Txn) -> Result<T, nuthatch_rpc::Error>,
    ) -> Outcome<T> {
        let mut slot = self.0.lock().await;
        let mut txn = slot.take().ok_or_else(|| Failure::closed("transaction"))?;
        let answer = call(&mut txn).await?;
        *slot = Some(txn);
        Ok(answer)
    }

    /// Takes the transaction, to commit it.
    pub(crate) async fn take(&self) -> Outcome<Txn> {
        self.0.lock().await.take().ok_or_else(|| Failure::closed("transaction"))
    }

    /// Ends the transaction without a commit. A call in progress keeps it until it has its
    /// response.
    pub(super) fn end(&self) {
        if let Ok(mut txn) = self.0.try_lock() {
            txn.take();
        }
    }
}
