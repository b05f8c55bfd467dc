//! Write transactions: one at a time, with nested ones.
//!
//! `txn` has the transaction, `expiry` the entries of rows that expire, `rows` the writes of rows,
//! and `commit` the end of a transaction.

mod commit;
pub(crate) mod expiry;
mod rows;
mod txn;

pub use rows::Condition;
pub use txn::WriteTxn;
