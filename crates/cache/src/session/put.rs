//! Storing an item: it is written to a tail, the index is pointed at it, and what was there before
//! is noted as gone.

use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::item::{Facts, Item};
use crate::memory::meta::Queue;
use crate::session::append::check_item;
use crate::session::state::{Expect, Turn};
use crate::write::{Condition, Expiry, Outcome, Write};

/// Numbers for compare-and-set taken at a time.
const CAS_NUMBERS: u64 = 1024;

impl Turn<'_> {
    /// Writes an item and points the index at it, if that holds what is expected.
    pub(crate) fn put(
        &self,
        (key, hash): (&[u8], KeyHash),
        value: &[u8],
        facts: Facts,
        expect: Expect,
    ) -> Result<bool> {
        check_item(self.cache(), key, value)?;
        let queue = if self.cache().ghost.is_back_soon(hash) { Queue::Main } else { Queue::Small };
        let mut open = self.session.open.borrow_mut();
        let is_ordinary = self.cache().segments.is_ordinary(key.len() + value.len());
        self.make_room(&mut open, if is_ordinary { key.len() + value.len() } else { 0 });
        if !is_ordinary {
            return self.put_large((key, hash), value, (facts, queue), expect);
        }
        let (place, len) = self
            .write_item(&mut open, queue, (key, value), (facts, self.cache().floor()))
            .ok_or(Error::Full)?;
        let stored = self.publish((key, hash), place, expect);
        if !matches!(stored, Ok(true)) {
            self.forget(&mut open, queue, facts, (place, len));
        }
        stored
    }

    /// Stores a value. Where there is no room in this turn, [`Full`](crate::Error::Full) says so,
    /// and a large value for which some can be made finds it after [`renew`](Self::renew), or in
    /// the next turn.
    pub fn set(&self, key: &[u8], value: &[u8], write: &Write<'_>) -> Result<Outcome> {
        self.set_hashed(key, self.cache().hash(key), value, write)
    }

    /// As [`set`](Self::set), with the hash of the key.
    pub fn set_hashed(
        &self,
        key: &[u8],
        hash: KeyHash,
        value: &[u8],
        write: &Write<'_>,
    ) -> Result<Outcome> {
        if write.condition == Condition::Always && write.expiry != Expiry::Keep {
            let facts = write.facts(self.now_ms(), None);
            self.put((key, hash), value, facts, Expect::Anything)?;
            return Ok(Outcome::Stored);
        }
        loop {
            let (current, expect) = self.peek_hashed(key, hash);
            if let Some(refused) = refusal(write.condition, current) {
                return Ok(refused);
            }
            let facts = write.facts(self.now_ms(), current.and_then(|item| item.expires_ms()));
            if self.put((key, hash), value, facts, expect)? {
                return Ok(Outcome::Stored);
            }
        }
    }

    /// Stores a value as `decide` says, which is given the item that there is; with `None` all
    /// stays as it is. Nobody else's write comes between; `decide` may be called again when one
    /// tries to.
    pub fn set_by<'w, R>(
        &self,
        key: &[u8],
        value: &[u8],
        mut decide: impl FnMut(Option<Item<'_>>) -> (Option<Write<'w>>, R),
    ) -> Result<R> {
        let hash = self.cache().hash(key);
        loop {
            let (current, expect) = self.peek_hashed(key, hash);
            let (write, answer) = decide(current);
            let Some(write) = write else { return Ok(answer) };
            let facts = write.facts(self.now_ms(), current.and_then(|item| item.expires_ms()));
            if self.put((key, hash), value, facts, expect)? {
                return Ok(answer);
            }
        }
    }

    /// Replaces the item of a key by what `change` makes of it. Nobody else's write comes between;
    /// `change` may be called again when one tries to. It writes the new value to the buffer it is
    /// given, which is empty, and answers how to store it; with `None` all stays as it is. An item
    /// that would be expired at once is not written: the old one is removed, which needs no memory.
    pub fn update<'w, R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(Option<Item<'_>>, &mut Vec<u8>) -> (Option<Write<'w>>, R),
    ) -> Result<R> {
        let hash = self.cache().hash(key);
        let mut value = Vec::new();
        loop {
            let (current, expect) = self.peek_hashed(key, hash);
            value.clear();
            let (write, answer) = change(current, &mut value);
            let Some(write) = write else { return Ok(answer) };
            let facts = write.facts(self.now_ms(), current.and_then(|item| item.expires_ms()));
            let has_expired = facts.expires_ms.is_some_and(|at_ms| at_ms <= self.now_ms());
            let is_done = if has_expired {
                self.remove_expected(key, hash, expect).is_some()
            } else {
                self.put((key, hash), &value, facts, expect)?
            };
            if is_done {
                return Ok(answer);
            }
        }
    }

    /// The item of a key, with a number for compare-and-set, which it gets now if it had none.
    pub fn with_cas(&self, key: &[u8]) -> Result<Option<(Item<'_>, u64)>> {
        let hash = self.cache().hash(key);
        loop {
            let Some(item) = self.get_hashed(key, hash) else { return Ok(None) };
            if let Some(cas) = item.cas() {
                return Ok(Some((item, cas)));
            }
            let (Some(item), expect) = self.peek_hashed(key, hash) else { return Ok(None) };
            let facts = Facts { cas: Some(self.new_cas()), ..item.head.facts };
            self.put((key, hash), item.value(), facts, expect)?;
        }
    }

    /// A number for compare-and-set that no item has.
    pub fn new_cas(&self) -> u64 {
        let mut numbers = self.session.cas.take();
        if numbers.is_empty() {
            let first = self.cache().take_cas(CAS_NUMBERS);
            numbers = first..first + CAS_NUMBERS;
        }
        let number = numbers.start;
        self.session.cas.set(number + 1..numbers.end);
        number
    }
}

/// Why a write is refused, if it is.
fn refusal(condition: Condition<'_>, current: Option<Item<'_>>) -> Option<Outcome> {
    let holds = match (condition, current) {
        (Condition::Always, _) | (Condition::Absent, None) | (Condition::Present, Some(_)) => true,
        (Condition::Absent, Some(_)) => false,
        (_, None) => return Some(Outcome::Missing),
        (Condition::Cas(cas), Some(item)) => item.cas() == Some(cas),
        (Condition::Value(value), Some(item)) => item.value() == value,
    };
    if holds { None } else { Some(Outcome::Exists) }
}
