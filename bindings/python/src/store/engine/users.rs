//! References that Python objects have to an open store. Closing the store releases them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// An object that keeps a store open.
pub(crate) trait StoreUser: Send + Sync {
    /// Releases the store. The caller may block, and must not be attached to the interpreter while
    /// it holds a lock.
    fn release(&self);
}

/// The objects that keep a store open.
#[derive(Default)]
pub(crate) struct StoreUsers(Mutex<List>);

#[derive(Default)]
struct List {
    users: Vec<Weak<dyn StoreUser>>,
    /// Number of users from which on dropped ones are removed.
    sweep_at: usize,
}

impl StoreUsers {
    pub(crate) fn add(&self, user: Weak<dyn StoreUser>) {
        const MIN_USERS: usize = 64;
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.users.len() >= list.sweep_at {
            list.users.retain(|user| user.strong_count() > 0);
            list.sweep_at = (2 * list.users.len()).max(MIN_USERS);
        }
        list.users.push(user);
    }

    /// Releases the store in all users.
    pub(crate) fn release(&self) {
        let list = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let users: Vec<Arc<dyn StoreUser>> = list.users.iter().filter_map(Weak::upgrade).collect();
        for user in users {
            user.release();
        }
    }
}
