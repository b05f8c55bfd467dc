//! What a child made by `fork` inherits of its parent's stores, and what it must leave alone. This
//! file holds unsafe code: it registers handlers of `fork`, and ends values by hand.
//!
//! A child has its parent's memory and descriptors, but none of its locks on files and none of its
//! threads. LMDB's table of readers is memory that both share: a child that ended its parent's
//! transaction would free its parent's slot, and pages that the parent reads would be used again.
//! So what belongs to the parent is never ended or closed by the child: it is forgotten.

use crate::error::{Error, Result};
use crate::registry;
use std::cell::RefCell;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many times `fork` was called between the first process that used this crate and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A process, as opposed to the children that it makes by `fork`, and to its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    /// Returns this process.
    #[inline]
    pub(crate) fn this() -> Self {
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Returns whether it is this process.
    #[inline]
    pub(crate) fn is_this(self) -> bool {
        self == Self::this()
    }

    /// Fails if it is not this process.
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        if self.is_this() { Ok(()) } else { Err(Error::Forked) }
    }
}

/// Registers the handlers of `fork`, once for each process. Idempotent.
///
/// # Errors
/// Fails if the system has no memory for them.
pub(crate) fn watch() -> io::Result<()> {
    static STATUS: OnceLock<i32> = OnceLock::new();
    let status = *STATUS.get_or_init(|| {
        // SAFETY: the three functions are there as long as the program, and take no arguments.
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) }
    });
    if status == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(status)) }
}

thread_local! {
    /// The registry's lock, held by the thread that calls `fork`.
    static HELD: RefCell<Option<registry::Guard>> = const { RefCell::new(None) };
}

/// Locks the registry, so that the child never finds it, or heed's own, locked by a thread that it
/// does not have.
extern "C" fn before() {
    let guard = registry::lock();
    // A thread that is ending has no such variable any more: it forks without the lock.
    let _ = HELD.try_with(|held| held.replace(Some(guard)));
}

extern "C" fn after_in_parent() {
    let _ = HELD.try_with(RefCell::take);
}

extern "C" fn after_in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let _ = HELD.try_with(RefCell::take);
}

/// A value that is dropped by the process that made it, and forgotten by children made by `fork`.
pub(crate) struct OfProcess<T> {
    owner: Owner,
    value: ManuallyDrop<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { owner: Owner::this(), value: ManuallyDrop::new(value) }
    }

    /// Returns whether this process made the value.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.owner.is_this()
    }

    /// Takes the value out, which is dropped like any other from then on.
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
            // SAFETY: a value is dropped once, and `into_inner` keeps its own from getting here.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}
