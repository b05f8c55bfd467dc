//! References that Python objects have to an open store. Closing the store releases them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// An object that keeps a store open.
pub(crate) trait Held: Send + Sync {
    /// Releases the store. The caller may block, and must not be attached to the interpreter while
    /// it holds a lock.
    fn release(&self);
}

/// The objects that keep a store open.
#[derive(Default)]
pub(crate) struct Holders(Mutex<List>);

#[derive(Default)]
struct List {
    holders: Vec<Weak<dyn Held>>,
    /// Number of holders from which on dropped ones are removed.
    sweep_at: usize,
}

impl Holders {
    pub(crate) fn add(&self, holder: Weak<dyn Held>) {
        const MIN_HOLDERS: usize = 64;
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.holders.len() >= list.sweep_at {
            list.holders.retain(|holder| holder.strong_count() > 0);
            list.sweep_at = (2 * list.holders.len()).max(MIN_HOLDERS);
        }
        list.holders.push(holder);
    }

    /// Releases the store in all holders.
    pub(crate) fn release(&self) {
        let list = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let holders: Vec<Arc<dyn Held>> = list.holders.iter().filter_map(Weak::upgrade).collect();
        for holder in holders {
            holder.release();
        }
    }
}
