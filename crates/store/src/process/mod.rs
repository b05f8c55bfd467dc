//! Ownership of values by a process, as opposed to children that it makes by `fork`. This file has
//! unsafe code: it drops values manually.

pub(crate) mod fork;
pub(crate) mod registry;

use crate::error::{Error, Result};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
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

/// Makes the current process a new owner. Called in a child made by `fork`.
pub(crate) fn begin_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
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
