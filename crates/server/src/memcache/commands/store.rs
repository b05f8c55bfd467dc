//! Storing, for text and meta requests.

use super::refusal::{NO_ROOM, Result};
use super::rewrite::{STALE, WON, write};
use super::time::End;
use crate::memcache::StoreMode;
use crate::state::{Server, update};
use nuthatch_cache::{Condition, Guard, Item, Write};

/// What to store, and on what it depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storing<'a> {
    pub(crate) mode: StoreMode,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) flags: u32,
    pub(crate) end: End,
    /// The number that the item must have.
    pub(crate) compare: Option<u64>,
    /// The number that the item gets, if it must have one at once.
    pub(crate) cas: Option<u64>,
    /// A value that is older than the item is stored all the same, and marked as stale.
    pub(crate) invalidate: bool,
    /// Until then, what is to be joined to nothing is stored as it is.
    pub(crate) vivify: Option<End>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is stored, and the value is so long.
    Yes { len: usize },
    /// The key is there or is not, against the mode.
    No,
    /// The item has another number.
    Exists,
    /// There is no item that could have the number.
    NotFound,
}

impl Storing<'_> {
    /// Stores it.
    #[inline]
    pub(crate) fn store(&self, (guard, server): (&Guard<'_>, &Server)) -> Result<Stored> {
        use nuthatch_cache::Outcome;
        let condition = match (self.mode, self.compare) {
            (StoreMode::Append | StoreMode::Prepend, _) => return self.join((guard, server)),
            // It is never stored where there is anything to compare with.
            (StoreMode::Add, _) => Condition::Absent,
            (StoreMode::Set | StoreMode::Replace, Some(cas)) if self.invalidate => {
                return self.store_or_invalidate(guard, cas);
            }
            (StoreMode::Set | StoreMode::Replace, Some(cas)) => Condition::Cas(cas),
            (StoreMode::Set, None) => Condition::Always,
            (StoreMode::Replace, None) => Condition::Present,
        };
        let outcome = guard.set(self.key, self.value, &self.write().condition(condition))?;
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

    /// Puts the value before or behind the one there.
    fn join(&self, (guard, server): (&Guard<'_>, &Server)) -> Result<Stored> {
        let len = |old| old + self.value.len();
        let joined = update((guard, server), self.key, len, |item, joined| {
            let Some(item) = item else { return self.make(joined) };
            // A number of 0 is none: then there is nothing to compare.
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
        joined.ok_or(NO_ROOM)
    }

    /// Where there is nothing to join with.
    fn make(&self, value: &mut Vec<u8>) -> (Option<Write<'static>>, Stored) {
        let Some(end) = self.vivify else { return (None, Stored::No) };
        value.extend_from_slice(self.value);
        (Some(self.write().expiry(end.expiry())), self.stored())
    }

    /// Stores the value if the item has this number; if it has a later one, the value is stored as
    /// a stale one, for which nobody else is asked to renew it.
    fn store_or_invalidate(&self, guard: &Guard<'_>, cas: u64) -> Result<Stored> {
        let change = |item: Option<Item<'_>>| {
            let Some(item) = item else { return (None, Stored::NotFound) };
            if item.cas() == Some(cas) {
                return (Some(self.write()), self.stored());
            }
            // An item without a number was written after the client got one.
            let later = cas != 0 && cas < item.cas().unwrap_or_else(|| guard.new_cas());
            if !later {
                return (None, Stored::Exists);
            }
            let write = self.write().expiry(End::of(&item).expiry());
            (Some(write.protocol_bits(STALE | item.protocol_bits() & WON)), self.stored())
        };
        Ok(guard.set_by(self.key, self.value, change)?)
    }
}
