//! Writing items: reclaim memory if necessary, append the item, point the index to it, and record
//! the previous item as removed.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::item::{Item, Metadata};
use crate::memory::meta::Queue;
use crate::session::append::check_item;
use crate::session::state::{Expect, Guard};
use crate::write::{Condition, Expiry, Outcome, Write};

/// Numbers for compare-and-set that a session allocates at a time.
const CAS_BATCH: u64 = 1024;

impl Guard<'_> {
    /// Writes an item and points the index to it, if the index holds what is expected. Returns
    /// whether it did.
    pub(crate) fn put(
        &self,
        (key, hash): (&[u8], KeyHash),
        value: &[u8],
        metadata: Metadata,
        expect: Expect,
    ) -> Result<bool> {
        let queue =
            if self.cache().ghost.should_promote(hash) { Queue::Main } else { Queue::Small };
        self.put_in((key, hash), value, (metadata, queue), expect)
    }

    /// Writes an item as [`put`](Self::put) does, to a segment of this queue.
    pub(super) fn put_in(
        &self,
        (key, hash): (&[u8], KeyHash),
        value: &[u8],
        (metadata, queue): (Metadata, Queue),
        expect: Expect,
    ) -> Result<bool> {
        check_item(self.cache(), key, value)?;
        if self.session.needs_disk.get() {
            return Err(Error::OnDisk);
        }
        let mut state = self.session.state.borrow_mut();
        let is_ordinary = self.cache().segments.is_ordinary(key.len() + value.len());
        self.reclaim_for_write(&mut state, if is_ordinary { key.len() + value.len() } else { 0 });
        if !is_ordinary {
            return self.put_large((key, hash), value, (metadata, queue), expect);
        }
        let (address, len) = self
            .append_item(
                &mut state,
                queue,
                (key, value),
                (metadata, self.cache().reserved_for_moves()),
            )
            .ok_or(Error::Full)?;
        let stored = self.publish((key, hash), address, expect);
        if !matches!(stored, Ok(true)) {
            self.undo_append(&mut state, queue, metadata, (address, len));
        }
        stored
    }

    /// Stores a value, if the condition of `write` holds.
    ///
    /// # Errors
    ///
    /// - [`TooLong`](crate::Error::TooLong) if the key or the value exceeds its maximum.
    /// - [`Full`](crate::Error::Full) if there is no memory under this guard. Then call
    ///   [`renew`](Self::renew), or begin the next guard, and retry: that frees memory, also for a
    ///   large value.
    /// - [`OnDisk`](crate::Error::OnDisk) if the condition or the expiry of the write depend on an
    ///   item on disk: see [`take_on_disk`](Self::take_on_disk).
    pub fn set(&self, key: &[u8], value: &[u8], write: &Write<'_>) -> Result<Outcome> {
        self.set_hashed(key, self.cache().hash(key), value, write)
    }

    /// Stores a value as [`set`](Self::set) does, for a key whose hash is known.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_hashed(
        &self,
        key: &[u8],
        hash: KeyHash,
        value: &[u8],
        write: &Write<'_>,
    ) -> Result<Outcome> {
        if write.condition == Condition::Always && write.expiry != Expiry::Keep {
            let metadata = write.metadata(self.now_ms(), None);
            self.put((key, hash), value, metadata, Expect::Anything)?;
            return Ok(Outcome::Stored);
        }
        loop {
            let (current, expect) = self.current(key, hash)?;
            if let Some(refused) = refusal(write.condition, current) {
                if current.is_none() && !self.confirm_missing_hashed(key, hash) {
                    continue;
                }
                return Ok(refused);
            }
            let metadata =
                write.metadata(self.now_ms(), current.and_then(|item| item.expires_ms()));
            if self.put((key, hash), value, metadata, expect)? {
                return Ok(Outcome::Stored);
            }
        }
    }

    /// Stores a value, or not, depending on the current item. Calls `decide` with that item, which
    /// is `None` if the key has none or it has expired. `decide` returns a pair: how to store the
    /// value, or `None` to change nothing; and the result of this call. The condition of the write
    /// is ignored.
    ///
    /// The read and the write are atomic: if another session writes the key in between, `decide` is
    /// called again with the new item.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_by<'w, R>(
        &self,
        key: &[u8],
        value: &[u8],
        mut decide: impl FnMut(Option<Item<'_>>) -> (Option<Write<'w>>, R),
    ) -> Result<R> {
        let hash = self.cache().hash(key);
        loop {
            let (current, expect) = self.current(key, hash)?;
            let (write, answer) = decide(current);
            let Some(write) = write else {
                if current.is_none() && !self.confirm_missing_hashed(key, hash) {
                    continue;
                }
                return Ok(answer);
            };
            let metadata =
                write.metadata(self.now_ms(), current.and_then(|item| item.expires_ms()));
            if self.put((key, hash), value, metadata, expect)? {
                return Ok(answer);
            }
        }
    }

    /// Replaces the value of a key by one that is computed from the current item. Calls `change`
    /// with that item, as [`set_by`](Self::set_by) does, and with an empty buffer for the new
    /// value. `change` returns a pair: how to store the new value, or `None` to change nothing; and
    /// the result of this call. The condition of the write is ignored.
    ///
    /// The read and the write are atomic: if another session writes the key in between, `change` is
    /// called again with the new item. If the expiry of the write has passed already, the current
    /// item is removed, which needs no memory.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn update<'w, R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(Option<Item<'_>>, &mut Vec<u8>) -> (Option<Write<'w>>, R),
    ) -> Result<R> {
        let hash = self.cache().hash(key);
        let mut value = Vec::new();
        loop {
            let (current, expect) = self.current(key, hash)?;
            value.clear();
            let (write, answer) = change(current, &mut value);
            let Some(write) = write else {
                if current.is_none() && !self.confirm_missing_hashed(key, hash) {
                    continue;
                }
                return Ok(answer);
            };
            let metadata =
                write.metadata(self.now_ms(), current.and_then(|item| item.expires_ms()));
            let has_expired = metadata.expires_ms.is_some_and(|at_ms| at_ms <= self.now_ms());
            let is_done = if has_expired {
                self.remove_expected(key, hash, expect).is_some()
            } else {
                self.put((key, hash), &value, metadata, expect)?
            };
            if is_done {
                return Ok(answer);
            }
        }
    }

    /// Records that an operation that may change a key found no item and changed nothing, so that
    /// restoring items of an earlier run does not bring the key back: a client that removes a key
    /// must not find it afterwards. Returns `false` if an item was restored meanwhile. Writes and
    /// updates under this guard do this themselves; it is for an operation that does not begin its
    /// update without an item.
    #[inline]
    pub fn confirm_missing(&self, key: &[u8]) -> bool {
        !self.cache().is_restoring() || self.confirm_missing_in_table(key, self.cache().hash(key))
    }

    #[inline]
    fn confirm_missing_hashed(&self, key: &[u8], hash: KeyHash) -> bool {
        !self.cache().is_restoring() || self.confirm_missing_in_table(key, hash)
    }

    #[cold]
    fn confirm_missing_in_table(&self, key: &[u8], hash: KeyHash) -> bool {
        let Cache { arena, tables, .. } = self.cache();
        let mut table = tables.lock(arena, hash);
        let found = table.find(|slot| self.len_if_key(key, slot).is_some());
        if let Some(found) = found.filter(|found| found.slot.is_on_disk()) {
            self.note_on_disk(hash, found.slot);
            return true;
        }
        let is_missing =
            found.is_none_or(|found| self.is_expired(&self.item(found.slot.address(), 0)));
        if is_missing {
            self.note_changed(hash);
        }
        is_missing
    }

    /// Returns the item of a key with its number for compare-and-set. If the item has none, stores
    /// it again with a new number. Counts a read of the item and a hit or a miss, as
    /// [`get`](Self::get) does.
    ///
    /// ```
    /// # use nuthatch_cache::{Cache, Condition, Options, Outcome, Write};
    /// # let cache = Cache::new(Options::new())?;
    /// # let mut session = cache.session()?;
    /// # let guard = session.guard();
    /// guard.set(b"visits", b"1", &Write::new())?;
    /// let (item, cas) = guard.get_with_cas(b"visits")?.expect("the item");
    /// assert_eq!((item.value(), item.frequency(), cache.stats().hits), (&b"1"[..], 1, 1));
    /// guard.set(b"visits", b"2", &Write::new())?;
    /// let write = Write::new().condition(Condition::Cas(cas));
    /// assert_eq!(guard.set(b"visits", b"3", &write)?, Outcome::Exists);
    /// # Ok::<(), nuthatch_cache::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Full`](crate::Error::Full) if there is no memory to store the number.
    pub fn get_with_cas(&self, key: &[u8]) -> Result<Option<(Item<'_>, u64)>> {
        let hash = self.cache().hash(key);
        let Some(item) = self.get_hashed(key, hash) else { return Ok(None) };
        if let Some(cas) = item.cas() {
            return Ok(Some((item, cas)));
        }
        loop {
            let (Some(item), expect) = self.peek_hashed(key, hash) else { return Ok(None) };
            if let Some(cas) = item.cas() {
                return Ok(Some((item, cas)));
            }
            let metadata =
                Metadata { cas: Some(self.new_cas()), record: None, ..item.header.metadata };
            self.put((key, hash), item.value(), metadata, expect)?;
        }
    }

    /// Returns a number for compare-and-set that the cache has not returned before. The numbers of
    /// one session increase; those of different sessions are not ordered.
    pub fn new_cas(&self) -> u64 {
        let mut numbers = self.session.cas.take();
        if numbers.is_empty() {
            let first = self.cache().allocate_cas(CAS_BATCH);
            numbers = first..first + CAS_BATCH;
        }
        let number = numbers.start;
        self.session.cas.set(number + 1..numbers.end);
        number
    }
}

/// Returns why a write must not happen, or `None` if its condition holds.
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
