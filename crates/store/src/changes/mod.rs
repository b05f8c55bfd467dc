//! Changes: numbered by the transaction that makes them, kept in a table, read by watches.

mod backoff;
mod follower;
#[cfg(test)]
mod follower_tests;
mod journal;
mod record;
mod watch;

pub(crate) use follower::Follower;
pub(crate) use journal::Journal;
#[cfg(test)]
pub(crate) use record::layout;
pub use record::{Act, Change};
pub use watch::{Start, Watch};
