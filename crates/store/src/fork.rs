//! Handling of `fork`: what a child process inherits from its parent's stores and must not use.
//! This file has unsafe code: it registers handlers of `fork`, and drops values manually.
//!
//! A child has its parent's memory and descriptors, but none of its file locks and threads. LMDB's
//! reader table is shared memory: a child that ended its parent's transaction would free the
//! parent's slot, and pages that the parent reads would be reused. So a child never ends or closes
//! what belongs to its parent.

use crate::error::{Error, Result};
use crate::registry;
use std::cell::RefCell;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of `fork` calls between the first process that used this crate and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A process, as distinguished from its children made by `fork` and its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    /// Returns the current process.
    #[inline]
    pub(crate) fn this() -> Self {
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Returns whether it is the current process.
    #[inline]
    pub(crate) fn is_this(self) -> bool {
        self == Self::this()
    }

    /// Returns an error if it is not the current process.
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        if self.is_this() { Ok(()) } else { Err(Error::Forked) }
    }
}

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
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let _ = HELD.try_with(RefCell::take);
}

/// A value that only the process that created it drops. In a child made by `fork`, it leaks.
pub(crate) struct OfProcess<T> {
    owner: Owner,
    value: ManuallyDrop<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { owner: Owner::this(), value: ManuallyDrop::new(value) }
    }

    /// Returns whether this process created the value.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.owner.is_this()
    }

    /// Returns the value, which is dropped normally from then on.
    pub(crate) fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped and not used again, so the value is taken once.
        unsafe { ManuallyDrop::take(&mut this.value) }
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OfProcess<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.is_own() {
            // SAFETY: a value is dropped once: `into_inner` prevents this drop.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}
