//! What belongs to the process that made it.

use crate::failure::{Failure, Outcome};
use crate::runtime::generation;
use std::sync::OnceLock;

/// Fails for what another process began: a child made by `fork` has none of the threads that it
/// needs, and must not end the transactions of its parent.
pub(crate) fn check_process(generation: u32, what: &str) -> Outcome<()> {
    if generation == self::generation() {
        return Ok(());
    }
    let message = format!("the {what} was opened before this process was forked: open another");
    Err(Failure::new("closed", message))
}

/// A value of its own for each process: for the one that made it, for a child made by `fork`, for
/// a child of that child. No process uses the locks of another one's, which may be held by threads
/// that it does not have.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    generation: u32,
    value: T,
    /// That of a child.
    next: OnceLock<Box<Self>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { generation: generation(), value, next: OnceLock::new() }
    }

    /// Returns the value of this process, the default one if it has none yet.
    pub(crate) fn here(&self) -> &T {
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

/// Something that a child made by `fork` forgets instead of dropping: its locks may be held by
/// threads that the child does not have, and those on files are its parent's to give back.
#[derive(Debug)]
pub(crate) struct Own<T> {
    generation: u32,
    /// There until it is taken.
    held: Option<T>,
}

impl<T> Own<T> {
    pub(crate) fn new(held: T) -> Self {
        Self { generation: generation(), held: Some(held) }
    }

    /// What is held, in the process that made it.
    pub(crate) fn here(&self) -> Option<&T> {
        self.held.as_ref().filter(|_| self.generation == generation())
    }

    /// What is held, in the process that made it, to be changed.
    pub(crate) fn here_mut(&mut self) -> Option<&mut T> {
        self.held.as_mut().filter(|_| self.generation == generation())
    }

    /// What is held, in whichever process: for what takes no locks and needs no threads.
    pub(crate) fn anywhere(&self) -> Option<&T> {
        self.held.as_ref()
    }

    /// Gives up what is held, in the process that made it.
    pub(crate) fn take(&mut self) -> Option<T> {
        let held = self.held.take();
        if self.generation == generation() {
            return held;
        }
        std::mem::forget(held);
        None
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}
