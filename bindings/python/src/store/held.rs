//! What Python objects hold of a store, so that closing it can take it back.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Something that keeps a store open.
pub(crate) trait Held: Send + Sync {
    /// Lets go of the store. Called by threads that may wait, and never by one that is attached to
    /// the interpreter and holds a lock.
    fn release(&self);
}

/// All that is held of a store.
#[derive(Default)]
pub(crate) struct Holders(Mutex<List>);

#[derive(Default)]
struct List {
    holders: Vec<Weak<dyn Held>>,
    /// When so many are there, those that are gone are taken out.
    sweep_at: usize,
}

impl Holders {
    pub(crate) fn add(&self, holder: Weak<dyn Held>) {
        const LEAST: usize = 64;
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.holders.len() >= list.sweep_at {
            list.holders.retain(|holder| holder.strong_count() > 0);
            list.sweep_at = (2 * list.holders.len()).max(LEAST);
        }
        list.holders.push(holder);
    }

    /// Has all let go.
    pub(crate) fn release(&self) {
        let list = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let holders: Vec<Arc<dyn Held>> = list.holders.iter().filter_map(Weak::upgrade).collect();
        for holder in holders {
            holder.release();
        }
    }
}
