//! Transactions of both kinds of stores, without Python classes.
//!
//! [`TxnState`] is the state of a transaction in Python: not begun, open as an [`OpenTxn`], or
//! ended.

mod local_read;
mod open_txn;
mod remote_txn;
mod state;
mod txn_view;
mod write_thread;

pub(crate) use open_txn::OpenTxn;
pub(crate) use state::TxnState;
