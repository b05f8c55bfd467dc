//! Changes: numbered by the transaction that makes them, and kept in a table.

mod journal;
mod record;

pub(crate) use journal::Journal;
pub(crate) use record::Record;
#[cfg(test)]
pub(crate) use record::layout;
pub use record::{Change, Operation};
