//! Writes of rows.

use super::expiry;
use super::txn::WriteTxn;
use crate::environment::Dbi;
use crate::error::{Error, Result};
use crate::pages::{Access, TableId};
use crate::range::Range;
use crate::read::Read;
use crate::read::rows::Rows;
use crate::scan::Scan;
use crate::stamp::{self, Stamp};
use crate::table::Table;
use heed::{MdbError, PutFlags, RwTxn};

/// The maximum length of a value, in bytes.
const MAX_VALUE_LEN: usize = u32::MAX as usize - 4096;
/// Number of keys of a range that are deleted between two scans.
const DELETE_BATCH_KEYS: u64 = 1024;

/// A requirement on a key, for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition<'c> {
    /// The key does not exist.
    Absent,
    /// The key exists.
    Present,
    /// The key exists with this value.
    Equals(&'c [u8]),
    /// The key of a stamped table exists with this version:
    /// [`Entry::version`](crate::Entry::version).
    Version(u64),
}

impl WriteTxn<'_> {
    /// Writes a value, and replaces an existing one.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if key or value is too long or the key is empty, [`Error::Full`] if the
    /// map is full, [`Error::TransactionFull`] if the transaction has too many pages,
    /// [`Error::Table`] if the table cannot be used in this transaction, and [`Error::Corrupt`] if
    /// a page is damaged.
    pub fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_row(table, key, value, 0, PutFlags::empty())
    }

    /// Writes a value that expires at a time, in milliseconds since 1970. The table must be
    /// stamped. A time in the past is valid: the row expires at once.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put), and [`Error::Table`] if the table is plain.
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
        // Zero means never. The first millisecond is in the past as well.
        self.put_row(table, key, value, expires_at_ms.max(1), PutFlags::empty())
    }

    /// Writes a value that expires `ms` milliseconds after the time of this transaction. The table
    /// must be stamped.
    ///
    /// # Errors
    ///
    /// As for [`put_until`](Self::put_until).
    pub fn put_for(&mut self, table: &Table, key: &[u8], value: &[u8], ms: u64) -> Result<()> {
        let now_ms = self.view().now_ms();
        self.put_until(table, key, value, now_ms.saturating_add(ms))
    }

    /// Writes a value if its key meets a condition. Returns whether it does.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put) and [`holds`](Self::holds).
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

    /// Writes a value whose key is greater than all keys of the table. This is faster than
    /// [`put`](Self::put), and fills pages completely.
    ///
    /// # Errors
    ///
    /// [`Error::Unordered`] for any other key, and those of [`put`](Self::put).
    pub fn append(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_row(table, key, value, 0, PutFlags::APPEND)
    }

    /// Deletes a key. Returns whether it existed; an expired row did not.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put).
    pub fn delete(&mut self, table: &Table, key: &[u8]) -> Result<bool> {
        if key.is_empty() {
            return Ok(false);
        }
        let stamp = self.stamp(table, key)?;
        let lived = stamp.is_none_or(|stamp| stamp.is_live_at(self.view().now_ms()));
        let deleted = self.delete_row(table, key)?;
        if let Some(stamp) = stamp {
            expiry::remove_entry(self, stamp)?;
        }
        if deleted && lived {
            self.journal_delete(table, key, false)?;
        }
        Ok(deleted && lived)
    }

    /// Deletes a key if it meets a condition. Returns whether it does.
    ///
    /// # Errors
    ///
    /// As for [`delete`](Self::delete) and [`holds`](Self::holds).
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

    /// Deletes all keys of a range. Returns their number.
    ///
    /// # Errors
    ///
    /// As for [`delete`](Self::delete).
    pub fn delete_range(&mut self, table: &Table, range: &Range) -> Result<u64> {
        self.shared.environment.check_process()?;
        if range.is_all() && !table.is_stamped() && !self.journal.keeps() {
            let count = self.count(table, range)?;
            let dbi = table.dbi(self.shared.id)?;
            self.committed.check_all(&self.shared.environment, TableId::of(table))?;
            let cleared = dbi.clear(&mut self.txn);
            cleared.map_err(|e| self.shared.table_error(table, "clear", e))?;
            return Ok(count);
        }
        let mut count = 0;
        let scan = Scan::new(range.clone()).keys_only().limit(DELETE_BATCH_KEYS);
        loop {
            let rows = Rows::new(self.view(), table, &scan)?;
            let keys = rows.map(|row| Ok(row?.0.to_vec())).collect::<Result<Vec<_>>>()?;
            for key in &keys {
                count += u64::from(self.delete(table, key)?);
            }
            if (keys.len() as u64) < DELETE_BATCH_KEYS {
                return Ok(count);
            }
        }
    }

    /// Returns whether a key meets a condition in this transaction.
    ///
    /// # Errors
    ///
    /// [`Error::Table`] if the condition needs a stamped table and the table is plain, and the
    /// errors of [`Read`].
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

    /// Changes the limits of kept changes.
    pub(crate) fn keep_changes(&mut self, max: Option<(u64, u64)>) -> Result<()> {
        let (shared, heed, journal) = self.parts();
        journal.keep(max);
        journal.write_kept(shared, heed)
    }

    fn put_row(
        &mut self,
        table: &Table,
        key: &[u8],
        value: &[u8],
        expiry_ms: u64,
        flags: PutFlags,
    ) -> Result<()> {
        let dbi = table.dbi(self.shared.id)?;
        self.shared.environment.check_process()?;
        self.check_row(key, value)?;
        let shared = self.shared;
        // An append changes the last leaf, whatever the key is.
        let place = Some(key).filter(|_| flags != PutFlags::APPEND);
        let stamp_len = if table.is_stamped() { stamp::layout::LEN } else { 0 };
        let access = Access::Put { row_len: key.len() + stamp_len + value.len() };
        self.committed.check(&shared.environment, TableId::of(table), place, access)?;
        let error = |e: heed::Error| match e {
            heed::Error::Mdb(MdbError::KeyExist) if flags == PutFlags::APPEND => {
                Error::Unordered { key: key.to_vec() }
            }
            e => shared.table_error(table, "put", e),
        };
        if table.is_stamped() {
            let version = self.journal.next();
            let stamp = Stamp { version, expiry_ms };
            let replaced = put_stamped(dbi, &mut self.txn, flags, key, stamp, value);
            if let Some(replaced) = replaced.map_err(error)? {
                expiry::remove_entry(self, replaced)?;
            }
            expiry::add_entry(self, table, key, stamp)?;
            self.journal.put(shared, &mut self.txn, table, key, value, stamp)
        } else {
            dbi.put_with_flags(&mut self.txn, flags, key, value).map_err(error)?;
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
        let row = self.view().stored_row(table, key)?;
        Ok(row.map(Stamp::split).transpose()?.map(|(stamp, _)| stamp))
    }

    fn check_row(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let max = self.shared.environment.max_key_len();
        if key.is_empty() || key.len() > max {
            let (max, found) = (max as u64, key.len() as u64);
            return Err(Error::Length { what: "key", min: 1, max, found });
        }
        if value.len() > MAX_VALUE_LEN {
            let (max, found) = (MAX_VALUE_LEN as u64, value.len() as u64);
            return Err(Error::Length { what: "value", min: 0, max, found });
        }
        Ok(())
    }
}

/// Writes a row of a stamped table. Returns the stamp of the row that it replaced.
fn put_stamped(
    dbi: Dbi,
    txn: &mut RwTxn<'_>,
    flags: PutFlags,
    key: &[u8],
    stamp: Stamp,
    value: &[u8],
) -> heed::Result<Option<Stamp>> {
    use std::io::Write;
    if flags == PutFlags::APPEND {
        // The key is above all others, so it replaces no row.
        let row = [&stamp.bytes()[..], value].concat();
        return dbi.put_with_flags(txn, flags, key, &row).map(|()| None);
    }
    // The row is assembled in the page. A new key is looked up once, an existing one twice.
    let len = stamp::layout::LEN + value.len();
    let write = |space: &mut heed::ReservedSpace<'_>| {
        space.write_all(&stamp.bytes())?;
        space.write_all(value)
    };
    let Some(row) = dbi.get_or_put_reserved(txn, key, len, write)? else { return Ok(None) };
    // A row that is too short for a stamp is damaged, and its entry cannot be found.
    let replaced = Stamp::split(row).map(|(stamp, _)| stamp).ok();
    dbi.put_reserved(txn, key, len, write)?;
    Ok(replaced)
}
