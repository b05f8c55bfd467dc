//! Locks between processes and between threads.
//!
//! The kernel releases the locks between processes when their holder dies.

mod bytes;
mod table_lock;
mod timed_mutex;

pub(crate) use bytes::{Byte, LockMode, is_unlocked, lock_byte, lock_bytes};
pub(crate) use table_lock::TableLock;
pub(crate) use timed_mutex::{TimedGuard, TimedMutex};
