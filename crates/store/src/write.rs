//! Writing: one transaction at a time, nested ones within it.

use crate::changes::Journal;
use crate::environment::{Bare, Pass, Turn};
use crate::error::{Error, Result};
use crate::fork::OfProcess;
use crate::pages::{Access, Committed, TableId};
use crate::range::Range;
use crate::read::{Pages, Read, View};
use crate::rows::Rows;
use crate::scan::Scan;
use crate::stamp::{self, Stamp};
use crate::store::Shared;
use crate::table::Table;
use heed::{MdbError, PutFlags, RwTxn};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

/// The longest value, in bytes.
const VALUE_MOST: usize = u32::MAX as usize - 4096;
/// How many keys of a range are deleted between two looks at the table.
const DELETE_AT_ONCE: u64 = 1024;

/// What must hold of a key for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition<'c> {
    /// The key is not there.
    Absent,
    /// The key is there.
    Present,
    /// The key is there with this value.
    Equals(&'c [u8]),
    /// The key of a stamped table is there in this version.
    Version(u64),
}

/// The one transaction that writes. It sees what it wrote; others do once it is committed. Dropping
/// it leaves nothing of it.
///
/// It belongs to the thread that began it.
pub struct WriteTxn<'s> {
    // Ends before the gate is left and the turn given up: fields go in this order.
    txn: OfProcess<RwTxn<'s>>,
    /// The committed pages that it begins from. Those that LMDB follows are checked before.
    committed: Rc<Committed>,
    journal: Journal,
    /// The journal of the transaction that this one is nested in.
    parent: Option<&'s mut Journal>,
    shared: &'s Shared,
    now: Cell<Option<u64>>,
    /// The place at the gate, and the turn to write; not of a nested one.
    right: Option<(Pass<'s>, Turn<'s>)>,
}

impl<'s> WriteTxn<'s> {
    pub(crate) fn new(
        shared: &'s Shared,
        txn: RwTxn<'s>,
        committed: Rc<Committed>,
        journal: Journal,
        pass: Pass<'s>,
        turn: Turn<'s>,
    ) -> Self {
        let (now, right) = (Cell::new(None), Some((pass, turn)));
        let txn = OfProcess::new(txn);
        Self { txn, committed, journal, parent: None, shared, now, right }
    }

    /// The number of this transaction, which readers see once it is committed.
    pub fn id(&self) -> u64 {
        self.txn.id() as u64
    }

    /// Writes a value under a key, in place of one that is there.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_row(table, key, value, 0, PutFlags::empty())
    }

    /// Writes a value that expires at a time, in milliseconds since the beginning of 1970. The
    /// table must be stamped.
    pub fn put_until(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        expires_at_ms: u64,
    ) -> Result<()> {
        if !table.is_stamped() {
            let expected = "a stamped table, whose rows can expire";
            return Err(Error::table(table.name(), expected, table.kind().name()));
        }
        // Zero stands for never: the first millisecond is as long past.
        self.put_row(table, key, value, expires_at_ms.max(1), PutFlags::empty())
    }

    /// Writes a value that expires after so many milliseconds. The table must be stamped.
    pub fn put_for(&mut self, table: &Table, key: &[u8], value: &[u8], ms: u64) -> Result<()> {
        let now_ms = self.view().now_ms();
        self.put_until(table, key, value, now_ms.saturating_add(ms))
    }

    /// Writes a value if a condition holds, and answers whether it did.
    pub fn put_if(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        condition: Condition<'_>,
    ) -> Result<bool> {
        let holds = self.holds(table, key, condition)?;
        if holds {
            self.put(table, key, value)?;
        }
        Ok(holds)
    }

    /// Writes a value under a key above all keys of the table, which is faster than putting it:
    /// pages are filled to the brim. Fails with [`Error::Unordered`] for any other key.
    pub fn append(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_row(table, key, value, 0, PutFlags::APPEND)
    }

    /// Deletes a key, and answers whether it was there.
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<bool> {
        if key.is_empty() {
            return Ok(false);
        }
        let stamp = self.stamp(table, key)?;
        let lived = stamp.is_none_or(|stamp| stamp.lives(self.view().now_ms()));
        let deleted = self.delete_row(table, key)?;
        if let Some(stamp) = stamp {
            crate::expiry::forget(self, stamp)?;
        }
        if deleted && lived {
            self.journal_delete(table, key, false)?;
        }
        Ok(deleted && lived)
    }

    /// Deletes a key if a condition holds, and answers whether it did.
    pub fn delete_if(
        &mut self,
        table: &Table,
        key: &[u8],
        condition: Condition<'_>,
    ) -> Result<bool> {
        let holds = self.holds(table, key, condition)?;
        if holds {
            self.delete(table, key)?;
        }
        Ok(holds)
    }

    /// Deletes all keys of a range, and answers how many there were.
    pub fn delete_range(&mut self, table: &Table, range: &Range) -> Result<u64> {
        self.shared.environment.check_process()?;
        if range.is_all() && !table.is_stamped() && !self.journal.keeps() {
            let count = self.count(table, range)?;
            let bare = table.bare(self.shared.id)?;
            self.committed.check_all(self.shared, TableId::of(table))?;
            let cleared = bare.clear(&mut self.txn);
            cleared.map_err(|e| self.shared.table_error(table, "clear", e))?;
            return Ok(count);
        }
        let mut count = 0;
        let scan = Scan::new(range.clone()).keys_only().limit(DELETE_AT_ONCE);
        loop {
            let rows = Rows::new(self.view(), table, &scan)?;
            let keys = rows.map(|row| Ok(row?.0.to_vec())).collect::<Result<Vec<_>>>()?;
            for key in &keys {
                count += u64::from(self.delete(table, key)?);
            }
            if (keys.len() as u64) < DELETE_AT_ONCE {
                return Ok(count);
            }
        }
    }

    /// Whether a condition holds of a key at present.
    pub fn holds(&self, table: &Table, key: &[u8], condition: Condition<'_>) -> Result<bool> {
        let entry = self.view().entry(table, key)?;
        Ok(match condition {
            Condition::Absent => entry.is_none(),
            Condition::Present => entry.is_some(),
            Condition::Equals(value) => entry.is_some_and(|entry| entry.value == value),
            Condition::Version(version) => {
                if !table.is_stamped() {
                    let expected = "a stamped table, whose rows have versions";
                    return Err(Error::table(table.name(), expected, table.kind().name()));
                }
                entry.is_some_and(|entry| entry.version == Some(version))
            }
        })
    }

    /// Changes what is kept for watches.
    pub(crate) fn keep_changes(&mut self, most: Option<(u64, u64)>) -> Result<()> {
        let (shared, heed, journal) = self.parts();
        journal.keep(most);
        journal.write_kept(shared, heed)
    }

    /// Begins a transaction within this one. What it wrote is part of this one once it is
    /// committed; dropped, it leaves nothing, and this one goes on.
    pub fn nested(&mut self) -> Result<WriteTxn<'_>> {
        self.shared.environment.check_process()?;
        let heed = self.shared.environment.heed();
        let txn = heed.nested_write_txn(&mut self.txn);
        let txn =
            txn.map_err(|e| self.shared.environment.error("begin a nested transaction", e))?;
        Ok(WriteTxn {
            txn: OfProcess::new(txn),
            committed: Rc::clone(&self.committed),
            journal: self.journal.clone(),
            parent: Some(&mut self.journal),
            shared: self.shared,
            now: self.now.clone(),
            right: None,
        })
    }

    /// Commits what was written. Returns the number of the last change; see [`Read::sequence`].
    ///
    /// # Errors
    /// Fails if the store's files were removed or replaced since they were opened: what is written
    /// to them then is lost when the last process closes them. A commit that is not synced finds
    /// that out within a tenth of a second. A folder that was moved is still the store.
    pub fn commit(mut self) -> Result<u64> {
        self.shared.environment.check_process()?;
        self.check_readable()?;
        if self.parent.is_none() {
            let limit = crate::expiry::SWEEP_AT_COMMIT;
            crate::expiry::sweep(&mut self, limit)?;
        }
        // The right goes last, also where this fails: bindings are dropped from the last to the
        // first.
        let Self { right, mut txn, mut journal, parent, shared, .. } = self;
        let sequence = journal.sequence();
        if parent.is_none() {
            journal.close(shared, &mut txn)?;
        }
        if let Some((_, turn)) = &right {
            shared.environment.check_before_commit(turn)?;
        }
        txn.into_inner().commit().map_err(|e| shared.environment.error("commit", e))?;
        if right.is_some() {
            shared.committed();
        }
        drop(right);
        if let Some(parent) = parent {
            *parent = journal;
        }
        Ok(sequence)
    }

    /// Ends the transaction without a trace, as dropping it does.
    pub fn abort(self) {}

    pub(crate) fn parts(&mut self) -> (&'s Shared, &mut RwTxn<'s>, &mut Journal) {
        (self.shared, &mut self.txn, &mut self.journal)
    }

    /// Checks the pages of one of the store's own tables before a key of it is changed.
    pub(crate) fn check_own(
        &self,
        table: TableId<'static>,
        key: &[u8],
        access: Access,
    ) -> Result<()> {
        self.committed.check(self.shared, table, Some(key), access)
    }

    fn put_row(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        expiry_ms: u64,
        flags: PutFlags,
    ) -> Result<()> {
        let bare = table.bare(self.shared.id)?;
        self.shared.environment.check_process()?;
        self.check_row(key, value)?;
        let shared = self.shared;
        // Appending goes to the last leaf, whatever the key is.
        let place = Some(key).filter(|_| flags != PutFlags::APPEND);
        let stamp_len = if table.is_stamped() { stamp::layout::LEN } else { 0 };
        let access = Access::Put { row_len: key.len() + stamp_len + value.len() };
        self.committed.check(shared, TableId::of(table), place, access)?;
        let error = |e: heed::Error| match e {
            heed::Error::Mdb(MdbError::KeyExist) if flags == PutFlags::APPEND => {
                Error::Unordered { key: key.to_vec() }
            }
            e => shared.table_error(table, "put", e),
        };
        if table.is_stamped() {
            let version = self.journal.next();
            let stamp = Stamp { version, expiry_ms };
            let replaced = put_stamped(bare, &mut self.txn, flags, key, stamp, value);
            if let Some(replaced) = replaced.map_err(error)? {
                crate::expiry::forget(self, replaced)?;
            }
            crate::expiry::note(self, table, key, stamp)?;
            self.journal.put(shared, &mut self.txn, table, key, value, stamp)
        } else {
            bare.put_with_flags(&mut self.txn, flags, key, value).map_err(error)?;
            if self.journal.keeps() {
                let stamp = Stamp { version: self.journal.next(), expiry_ms: 0 };
                self.journal.put(shared, &mut self.txn, table, key, value, stamp)?;
            }
            Ok(())
        }
    }

    /// Returns the stamp of a row, expired or not; `None` in a plain table.
    fn stamp(&self, table: &Table, key: &[u8]) -> Result<Option<Stamp>> {
        if !table.is_stamped() {
            return Ok(None);
        }
        let row = self.view().raw(table, key)?;
        Ok(row.map(Stamp::split).transpose()?.map(|(stamp, _)| stamp))
    }

    /// Takes a row out of its table alone.
    pub(crate) fn delete_row(&mut self, table: &Table, key: &[u8]) -> Result<bool> {
        let bare = table.bare(self.shared.id)?;
        self.shared.environment.check_process()?;
        self.committed.check(self.shared, TableId::of(table), Some(key), Access::Delete)?;
        let deleted = bare.delete(&mut self.txn, key);
        deleted.map_err(|e| self.shared.table_error(table, "delete", e))
    }

    /// Records that a key went.
    pub(crate) fn journal_delete(
        &mut self,
        table: &Table,
        key: &[u8],
        expired: bool,
    ) -> Result<()> {
        if self.journal.keeps() {
            let number = self.journal.next();
            self.journal.delete(self.shared, &mut self.txn, table, key, number, expired)?;
        }
        Ok(())
    }

    fn check_row(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let most = self.shared.environment.key_most();
        if key.is_empty() || key.len() > most {
            let (most, found) = (most as u64, key.len() as u64);
            return Err(Error::Length { what: "key", least: 1, most, found });
        }
        if value.len() > VALUE_MOST {
            let (most, found) = (VALUE_MOST as u64, value.len() as u64);
            return Err(Error::Length { what: "value", least: 0, most, found });
        }
        Ok(())
    }
}

/// Writes a row of a stamped table. Returns the stamp of the row that it replaced.
fn put_stamped(
    bare: Bare,
    txn: &mut RwTxn<'_>,
    flags: PutFlags,
    key: &[u8],
    stamp: Stamp,
    value: &[u8],
) -> heed::Result<Option<Stamp>> {
    use std::io::Write;
    if flags == PutFlags::APPEND {
        // The key is above all others, so there is no such row.
        let row = [&stamp.bytes()[..], value].concat();
        return bare.put_with_flags(txn, flags, key, &row).map(|()| None);
    }
    // The row is put together in the page. A new key is looked up once, an existing one twice.
    let len = stamp::layout::LEN + value.len();
    let write = |space: &mut heed::ReservedSpace<'_>| {
        space.write_all(&stamp.bytes())?;
        space.write_all(value)
    };
    let Some(row) = bare.get_or_put_reserved(txn, key, len, write)? else { return Ok(None) };
    // A row that is too short for a stamp is damaged, and has no entry that could be found.
    let replaced = Stamp::split(row).map(|(stamp, _)| stamp).ok();
    bare.put_reserved(txn, key, len, write)?;
    Ok(replaced)
}

impl Read for WriteTxn<'_> {
    fn view(&self) -> View<'_> {
        View::new(&self.txn, self.shared, &self.now, Pages::Write(&self.committed))
    }

    fn sequence(&self) -> Result<u64> {
        Ok(self.journal.sequence())
    }
}

impl fmt::Debug for WriteTxn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTxn").field("id", &self.id()).finish_non_exhaustive()
    }
}
