//! Reads in transactions of a store in this process.

use nuthatch_store::{Read, View};

/// The view of a transaction, for reads and writes, of a store in this process.
pub(crate) struct TxnView<'t>(pub(crate) View<'t>);

impl Read for TxnView<'_> {
    fn view(&self) -> View<'_> {
        self.0
    }
}
