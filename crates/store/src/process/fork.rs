//! Handling of `fork`: what a child process inherits from its parent's stores and must not use.
//! This file has unsafe code: it registers handlers of `fork`, and drops values manually.
//!
//! A child has its parent's memory and descriptors, but none of its file locks and threads. LMDB's
//! reader table is shared memory: a child that ended its parent's transaction would free the
//! parent's slot, and pages that the parent reads would be reused. So a child never ends or closes
//! what belongs to its parent.

use crate::process;
use crate::process::registry;
use std::cell::RefCell;
use std::io;
use std::sync::OnceLock;

/// Registers the handlers of `fork`, once for each process. Idempotent.
///
/// # Errors
/// Fails if the system is out of memory.
pub(crate) fn watch() -> io::Result<()> {
    static STATUS: OnceLock<i32> = OnceLock::new();
    let status = *STATUS.get_or_init(|| {
        // SAFETY: the three functions exist as long as the program, and take no arguments.
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) }
    });
    if status == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(status)) }
}

thread_local! {
    /// The lock of the registry, while this thread calls `fork`.
    static HELD: RefCell<Option<registry::Guard>> = const { RefCell::new(None) };
}

/// Locks the registry, so that in the child neither the registry nor heed's own one is locked by a
/// thread that the child does not have.
extern "C" fn before() {
    let guard = registry::lock();
    // A thread that is ending has no such variable: it forks without the lock.
    let _ = HELD.try_with(|held| held.replace(Some(guard)));
}

extern "C" fn after_in_parent() {
    let _ = HELD.try_with(RefCell::take);
}

extern "C" fn after_in_child() {
    process::begin_child();
    let _ = HELD.try_with(RefCell::take);
}
