//! Stores values, for text and meta requests.

use super::refusal::{OUT_OF_MEMORY, Result};
use super::rewrite::{STALE, WON, write};
use super::time::End;
use crate::memcache::StoreMode;
use crate::state::update;
use crate::state::values::{self, Place};
use nuthatch_cache::{Condition, Item, Write};

/// A value to store, and its conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storing<'a> {
    pub(crate) mode: StoreMode,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) flags: u32,
    pub(crate) end: End,
    /// The CAS number that the item must have.
    pub(crate) compare: Option<u64>,
    /// The new CAS number of the item, if it must have one at once.
    pub(crate) cas: Option<u64>,
    /// Whether a value that is older than the item is stored nevertheless, and marked as stale.
    pub(crate) invalidate: bool,
    /// The expiry of the item that an append or prepend creates if the key is missing.
    pub(crate) vivify: Option<End>,
}

/// The result of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Stored, with the length of the value.
    Yes { len: usize },
    /// Not stored: the key exists or is missing, contrary to the mode.
    No,
    /// Not stored: the item has another CAS number.
    Exists,
    /// Not stored: there is no item to compare with.
    NotFound,
}

impl Storing<'_> {
    /// Stores the value.
    #[inline]
    pub(crate) fn store(&self, (guard, server): Place<'_>) -> Result<Stored> {
        use nuthatch_cache::Outcome;
        let condition = match (self.mode, self.compare) {
            (StoreMode::Append | StoreMode::Prepend, _) => return self.join((guard, server)),
            // `add` stores only if there is no item to compare with.
            (StoreMode::Add, _) => Condition::Absent,
            (StoreMode::Set | StoreMode::Replace, Some(cas)) if self.invalidate => {
                return self.store_or_invalidate((guard, server), cas);
            }
            (StoreMode::Set | StoreMode::Replace, Some(cas)) => Condition::Cas(cas),
            (StoreMode::Set, None) => Condition::Always,
            (StoreMode::Replace, None) => Condition::Present,
        };
        let write = self.write().condition(condition);
        let outcome = values::set((guard, server), self.key, self.value, &write)?;
        let compares = matches!(condition, Condition::Cas(_));
        Ok(match outcome {
            Outcome::Stored => self.stored(),
            Outcome::Exists if compares => Stored::Exists,
            Outcome::Missing if compares => Stored::NotFound,
            Outcome::Exists | Outcome::Missing => Stored::No,
        })
    }

    fn stored(&self) -> Stored {
        Stored::Yes { len: self.value.len() }
    }

    fn write(&self) -> Write<'static> {
        write(self.end, self.cas).flags(self.flags)
    }

    /// Appends or prepends the value to the stored one.
    fn join(&self, (guard, server): Place<'_>) -> Result<Stored> {
        let len = |old| old + self.value.len();
        let joined = update((guard, server), self.key, len, |item, joined| {
            let Some(item) = item else { return self.make(joined) };
            // CAS number 0 means no comparison.
            let compare = self.compare.filter(|cas| *cas != 0);
            if compare.is_some() && compare != item.cas() {
                return (None, Stored::Exists);
            }
            let (first, second) = match self.mode {
                StoreMode::Prepend => (self.value, item.value()),
                _ => (item.value(), self.value),
            };
            joined.extend_from_slice(first);
            joined.extend_from_slice(second);
            let len = joined.len();
            let write = write(End::of(&item), self.cas).flags(item.flags());
            (Some(write), Stored::Yes { len })
        })?;
        joined.ok_or(OUT_OF_MEMORY)
    }

    /// Stores the value of an append or prepend whose key is missing.
    fn make(&self, value: &mut Vec<u8>) -> (Option<Write<'static>>, Stored) {
        let Some(end) = self.vivify else { return (None, Stored::No) };
        value.extend_from_slice(self.value);
        (Some(self.write().expiry(end.expiry())), self.stored())
    }

    /// Stores the value if the item has this CAS number. If the number of the item is later, stores
    /// the value and marks it as stale. If a client was already chosen to renew the item, no other
    /// one is.
    fn store_or_invalidate(&self, (guard, server): Place<'_>, cas: u64) -> Result<Stored> {
        let change = |item: Option<Item<'_>>| {
            let Some(item) = item else { return (None, Stored::NotFound) };
            if item.cas() == Some(cas) {
                return (Some(self.write()), self.stored());
            }
            // An item without a CAS number was written after the client got one.
            let later = cas != 0 && cas < item.cas().unwrap_or_else(|| guard.new_cas());
            if !later {
                return (None, Stored::Exists);
            }
            let write = self.write().expiry(End::of(&item).expiry());
            (Some(write.protocol_bits(STALE | item.protocol_bits() & WON)), self.stored())
        };
        Ok(values::set_by((guard, server), self.key, self.value, change)?)
    }
}
