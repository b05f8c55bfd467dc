//! What belongs to the process that made it.

use crate::runtime::generation;

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
