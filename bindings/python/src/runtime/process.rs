//! Values that belong to the process that created them.

use crate::failure::{Failure, Outcome};
use crate::runtime::generation;
use std::sync::OnceLock;

/// Fails if another process created a value. A child made by `fork` has none of the threads that
/// the value needs, and must not end the transactions of its parent.
pub(crate) fn check_process(generation: u32, what: &str) -> Outcome<()> {
    if generation == self::generation() {
        return Ok(());
    }
    let message = format!("the {what} was opened before this process was forked: open another");
    Err(Failure::new("closed", message))
}

/// One value per process: for the process that created it, for a child made by `fork`, and for
/// children of that child. A process never uses locks of another one, which can be value by threads
/// that it does not have.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    generation: u32,
    value: T,
    /// The value of a child process.
    next: OnceLock<Box<Self>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { generation: generation(), value, next: OnceLock::new() }
    }

    /// Returns the value of this process. Creates the default one on first use.
    pub(crate) fn in_process(&self) -> &T {
        let mut at = self;
        while at.generation != generation() {
            at = at.next.get_or_init(|| Box::new(Self::new(T::default())));
        }
        &at.value
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// A value that a child made by `fork` leaks instead of dropping. Its locks can be value by threads
/// that the child does not have, and its file locks belong to the parent.
#[derive(Debug)]
pub(crate) struct ProcessBound<T> {
    generation: u32,
    /// `None` after it was taken.
    value: Option<T>,
}

impl<T> ProcessBound<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { generation: generation(), value: Some(value) }
    }

    /// Returns the value in the process that created it; otherwise `None`.
    pub(crate) fn in_process(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.generation == generation())
    }

    /// Returns the value mutably in the process that created it; otherwise `None`.
    pub(crate) fn in_process_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.generation == generation())
    }

    /// Returns the value in any process. Only for uses that need no locks and no threads.
    pub(crate) fn in_any_process(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Takes the value in the process that created it; otherwise returns `None`.
    pub(crate) fn take(&mut self) -> Option<T> {
        let value = self.value.take();
        if self.generation == generation() {
            return value;
        }
        std::mem::forget(value);
        None
    }
}

impl<T> Drop for ProcessBound<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}
