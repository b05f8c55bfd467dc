//! The journal of a write transaction: assigns sequence numbers and keeps changes for watches.

use super::record::{Operation, Record};
use crate::codec::integers::{key_of, number_of};
use crate::error::Result;
use crate::pages::{Access, Committed, TableId};
use crate::read::view::View;
use crate::shared::Shared;
use crate::stamp::Stamp;
use crate::table::Table;
use crate::table::system_tables::{Kept, SystemTables, layout};
use heed::{PutFlags, RwTxn};
use std::rc::Rc;

/// A commit drops at most this many of the oldest changes for each change that it adds, plus
/// [`MAX_DROPPED_EXTRA`], so that its work is bounded. After a long change, several commits may
/// exceed the maximum bytes until enough short ones are dropped.
const MAX_DROPPED_PER_CHANGE: u64 = 2;
const MAX_DROPPED_EXTRA: u64 = 64;

/// The sequence number and the kept changes of a write transaction. A nested transaction works on a
/// copy.
#[derive(Clone)]
pub(crate) struct Journal {
    system_tables: Option<SystemTables>,
    /// Checks pages of the system tables before they are changed.
    committed: Rc<Committed>,
    sequence: u64,
    first: u64,
    kept: Option<Kept>,
}

impl Journal {
    /// Reads the state at the beginning of a transaction.
    pub(crate) fn open(
        system_tables: Option<SystemTables>,
        committed: Rc<Committed>,
        view: &View<'_>,
    ) -> Result<Self> {
        let (sequence, kept) = match &system_tables {
            Some(system_tables) => {
                system_tables.check_format(view)?;
                (system_tables.sequence(view)?, system_tables.kept(view)?)
            }
            None => (0, None),
        };
        Ok(Self { system_tables, committed, sequence, first: sequence, kept })
    }

    /// Returns whether changes are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    pub(crate) fn system_tables(&self) -> Option<SystemTables> {
        self.system_tables
    }

    /// Returns the number of the last change.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Assigns the next sequence number.
    pub(crate) fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Sets the limits of kept changes, as a number and bytes. `None` keeps no changes.
    pub(crate) fn keep(&mut self, limits: Option<(u64, u64)>) {
        let next = self.sequence + 1;
        let before = self.kept.unwrap_or(Kept { oldest: next, ..Kept::default() });
        self.kept = limits.map(|(max, max_bytes)| Kept { max, max_bytes, ..before });
    }

    /// Writes the limits, and drops the changes beyond them. Drops all changes if none are kept.
    pub(crate) fn write_kept(&mut self, shared: &Shared, txn: &mut RwTxn<'_>) -> Result<()> {
        let Some(system_tables) = self.system_tables else { return Ok(()) };
        let error = |e| shared.environment.error("settings", e);
        let check = |access| {
            self.committed.check(
                &shared.environment,
                TableId::SETTINGS,
                Some(layout::KEEP_KEY),
                access,
            )
        };
        check(Access::Delete)?;
        check(put_of_words(layout::KEEP_KEY, layout::KEEP_WORDS))?;
        if let Some(kept) = &mut self.kept {
            trim(shared, txn, &self.committed, &system_tables, kept, self.sequence, u64::MAX)?;
            return system_tables.put_kept(txn, *kept).map_err(error);
        }
        self.committed.check_all(&shared.environment, TableId::CHANGES)?;
        system_tables.changes.clear(txn).map_err(error)?;
        system_tables.remove_kept(txn).map_err(error)
    }

    pub(crate) fn put(
        &mut self,
        shared: &Shared,
        txn: &mut RwTxn<'_>,
        table: &Table,
        key: &[u8],
        value: &[u8],
        stamp: Stamp,
    ) -> Result<()> {
        let transaction = txn.id() as u64;
        let (operation, expiry_ms, table) = (Operation::Put, stamp.expiry_ms, table.name());
        let record = Record { operation, transaction, expiry_ms, table, key, value };
        self.add(shared, txn, stamp.version, &record)
    }

    pub(crate) fn delete(
        &mut self,
        shared: &Shared,
        txn: &mut RwTxn<'_>,
        table: &Table,
        key: &[u8],
        number: u64,
        expired: bool,
    ) -> Result<()> {
        let transaction = txn.id() as u64;
        let operation = if expired { Operation::Expire } else { Operation::Delete };
        let (expiry_ms, table) = (0, table.name());
        let record = Record { operation, transaction, expiry_ms, table, key, value: &[] };
        self.add(shared, txn, number, &record)
    }

    fn add(
        &mut self,
        shared: &Shared,
        txn: &mut RwTxn<'_>,
        number: u64,
        record: &Record<'_>,
    ) -> Result<()> {
        let (Some(system_tables), Some(kept)) = (&self.system_tables, &mut self.kept) else {
            return Ok(());
        };
        let bytes = record.bytes();
        kept.bytes += bytes.len() as u64;
        let key = key_of(number);
        let access = Access::Put { row_len: key.len() + bytes.len() };
        self.committed.check(&shared.environment, TableId::CHANGES, None, access)?;
        // Sequence numbers only grow, so a record is the last one of the table.
        let put = system_tables.changes.put_with_flags(txn, PutFlags::APPEND, &key, &bytes);
        put.map_err(|e| shared.environment.error("keep a change", e))
    }

    /// Writes the settings that the transaction changed. Called last before the commit.
    pub(crate) fn close(&mut self, shared: &Shared, txn: &mut RwTxn<'_>) -> Result<()> {
        let Some(system_tables) = self.system_tables.filter(|_| self.sequence > self.first) else {
            return Ok(());
        };
        let error = |e| shared.environment.error("settings", e);
        let check = |key, words| {
            let access = put_of_words(key, words);
            self.committed.check(&shared.environment, TableId::SETTINGS, Some(key), access)
        };
        if let Some(mut kept) = self.kept {
            let max_dropped =
                MAX_DROPPED_PER_CHANGE * (self.sequence - self.first) + MAX_DROPPED_EXTRA;
            trim(
                shared,
                txn,
                &self.committed,
                &system_tables,
                &mut kept,
                self.sequence,
                max_dropped,
            )?;
            check(layout::KEEP_KEY, layout::KEEP_WORDS)?;
            system_tables.put_kept(txn, kept).map_err(error)?;
        }
        check(layout::SEQUENCE_KEY, 1)?;
        system_tables.put_sequence(txn, self.sequence).map_err(error)
    }
}

/// Returns the access of writing `words` words to the settings.
fn put_of_words(key: &[u8], words: usize) -> Access {
    Access::Put { row_len: key.len() + words * size_of::<u64>() }
}

/// Drops the oldest changes beyond the limits, at most `max_dropped` of them. The newest change
/// stays, however long it is: a watch that is up to date does not lose it.
fn trim(
    shared: &Shared,
    txn: &mut RwTxn<'_>,
    committed: &Committed,
    system_tables: &SystemTables,
    kept: &mut Kept,
    newest: u64,
    max_dropped: u64,
) -> Result<()> {
    let error = |e| shared.environment.error("drop a change", e);
    for _ in 0..max_dropped {
        // Changes that were not kept leave gaps, so this is the maximum of the count.
        let count = (newest + 1).saturating_sub(kept.oldest);
        if count <= kept.max && kept.bytes <= kept.max_bytes {
            return Ok(());
        }
        committed.check(&shared.environment, TableId::CHANGES, Some(b""), Access::Read)?;
        let first = system_tables.changes.first(txn).map_err(error)?;
        let Some((key, record)) = first else {
            (kept.oldest, kept.bytes) = (newest + 1, 0);
            return Ok(());
        };
        let (number, len) = (number_of(key).unwrap_or(newest), record.len() as u64);
        if number >= newest && kept.max > 0 {
            return Ok(());
        }
        let key = key.to_vec();
        committed.check(&shared.environment, TableId::CHANGES, Some(&key), Access::Delete)?;
        system_tables.changes.delete(txn, &key).map_err(error)?;
        kept.bytes = kept.bytes.saturating_sub(len);
        kept.oldest = number + 1;
    }
    Ok(())
}
