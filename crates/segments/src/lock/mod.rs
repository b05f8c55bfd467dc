//! Locks between processes and between threads.
//!
//! | lock | on | type |
//! |---|---|---|
//! | table lock | the folder | [`FolderLock`] |
//! | byte locks | bytes of a file | [`on_byte`], [`on_bytes`] |
//! | between threads of a process | | [`TimedMutex`] |
//!
//! The kernel releases locks between processes when their holder dies.

mod bytes;
mod folder_lock;
mod timed_mutex;

pub(crate) use bytes::{Byte, Mode, is_free, on_byte, on_bytes};
pub(crate) use folder_lock::FolderLock;
pub(crate) use timed_mutex::{TimedGuard, TimedMutex};
