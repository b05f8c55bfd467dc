//! What a write transaction gives numbers to, and keeps for watches.

use super::record::{Act, Record};
use crate::codec::integers::{key_of, number_of};
use crate::error::Result;
use crate::own::{Kept, Own, layout};
use crate::pages::{Access, Committed, TableId};
use crate::read::View;
use crate::stamp::Stamp;
use crate::store::Shared;
use crate::table::Table;
use heed::{PutFlags, RwTxn};
use std::rc::Rc;

/// How many of the oldest changes a commit lets go for each that it adds, at most; and a few more,
/// so that a smaller number of kept ones is reached in time.
const DROPPED_FOR_EACH: u64 = 2;
const DROPPED_MORE: u64 = 64;

/// The numbers and the kept changes of a write transaction. A nested one works on a copy.
#[derive(Clone)]
pub(crate) struct Journal {
    own: Option<Own>,
    /// Checks pages of the store's own tables before they are changed.
    committed: Rc<Committed>,
    sequence: u64,
    first: u64,
    kept: Option<Kept>,
}

impl Journal {
    /// What the store has at the beginning of a transaction.
    pub(crate) fn open(
        own: Option<Own>,
        committed: Rc<Committed>,
        view: &View<'_>,
    ) -> Result<Self> {
        let (sequence, kept) = match &own {
            Some(own) => {
                own.check_format(view)?;
                (own.sequence(view)?, own.kept(view)?)
            }
            None => (0, None),
        };
        Ok(Self { own, committed, sequence, first: sequence, kept })
    }

    /// Whether changes are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.kept.is_some()
    }

    pub(crate) fn own(&self) -> Option<Own> {
        self.own
    }

    /// The number of the last change.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Gives a number to a change.
    pub(crate) fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Changes what is kept from now on.
    pub(crate) fn keep(&mut self, most: Option<(u64, u64)>) {
        let next = self.sequence + 1;
        let before = self.kept.unwrap_or(Kept { oldest: next, ..Kept::default() });
        self.kept = most.map(|(most, most_bytes)| Kept { most, most_bytes, ..before });
    }

    /// Writes what is kept, and lets go of everything that was where nothing is.
    pub(crate) fn write_kept(&mut self, shared: &Shared, txn: &mut RwTxn<'_>) -> Result<()> {
        let Some(own) = self.own else { return Ok(()) };
        let error = |e| shared.environment.error("settings", e);
        let check = |access| {
            self.committed.check(shared, TableId::SETTINGS, Some(layout::KEEP_KEY), access)
        };
        check(Access::Delete)?;
        check(put_of_words(layout::KEEP_KEY, layout::KEEP_WORDS))?;
        if let Some(kept) = &mut self.kept {
            trim(shared, txn, &self.committed, &own, kept, self.sequence, u64::MAX)?;
            return own.put_kept(txn, *kept).map_err(error);
        }
        self.committed.check_all(shared, TableId::CHANGES)?;
        own.changes.clear(txn).map_err(error)?;
        own.remove_kept(txn).map_err(error)
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
        let (act, expiry_ms, table) = (Act::Put, stamp.expiry_ms, table.name());
        let record = Record { act, transaction, expiry_ms, table, key, value };
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
        let act = if expired { Act::Expire } else { Act::Delete };
        let (expiry_ms, table) = (0, table.name());
        let record = Record { act, transaction, expiry_ms, table, key, value: &[] };
        self.add(shared, txn, number, &record)
    }

    fn add(
        &mut self,
        shared: &Shared,
        txn: &mut RwTxn<'_>,
        number: u64,
        record: &Record<'_>,
    ) -> Result<()> {
        let (Some(own), Some(kept)) = (&self.own, &mut self.kept) else { return Ok(()) };
        let bytes = record.bytes();
        kept.bytes += bytes.len() as u64;
        let key = key_of(number);
        let access = Access::Put { row_len: key.len() + bytes.len() };
        self.committed.check(shared, TableId::CHANGES, None, access)?;
        // The numbers only grow, so a record goes behind all others.
        let put = own.changes.put_with_flags(txn, PutFlags::APPEND, &key, &bytes);
        put.map_err(|e| shared.environment.error("keep a change", e))
    }

    /// Writes what the transaction leaves in the settings. The last thing before its commit.
    pub(crate) fn close(&mut self, shared: &Shared, txn: &mut RwTxn<'_>) -> Result<()> {
        let Some(own) = self.own.filter(|_| self.sequence > self.first) else { return Ok(()) };
        let error = |e| shared.environment.error("settings", e);
        let check = |key, words| {
            let access = put_of_words(key, words);
            self.committed.check(shared, TableId::SETTINGS, Some(key), access)
        };
        if let Some(mut kept) = self.kept {
            let most = DROPPED_FOR_EACH * (self.sequence - self.first) + DROPPED_MORE;
            trim(shared, txn, &self.committed, &own, &mut kept, self.sequence, most)?;
            check(layout::KEEP_KEY, layout::KEEP_WORDS)?;
            own.put_kept(txn, kept).map_err(error)?;
        }
        check(layout::SEQUENCE_KEY, 1)?;
        own.put_sequence(txn, self.sequence).map_err(error)
    }
}

/// Returns the access of a write of so many words to the settings.
fn put_of_words(key: &[u8], words: usize) -> Access {
    Access::Put { row_len: key.len() + words * size_of::<u64>() }
}

/// Drops the oldest changes beyond what is kept, at most `most` of them. The newest change stays,
/// however long it is: a watch that is up to date does not lose it.
fn trim(
    shared: &Shared,
    txn: &mut RwTxn<'_>,
    committed: &Committed,
    own: &Own,
    kept: &mut Kept,
    newest: u64,
    most: u64,
) -> Result<()> {
    let error = |e| shared.environment.error("let a change go", e);
    for _ in 0..most {
        // Numbers that were not kept leave gaps, so this is the most that there can be.
        let count = (newest + 1).saturating_sub(kept.oldest);
        if count <= kept.most && kept.bytes <= kept.most_bytes {
            return Ok(());
        }
        committed.check(shared, TableId::CHANGES, Some(b""), Access::Read)?;
        let first = own.changes.first(txn).map_err(error)?;
        let Some((key, record)) = first else {
            (kept.oldest, kept.bytes) = (newest + 1, 0);
            return Ok(());
        };
        let (number, len) = (number_of(key).unwrap_or(newest), record.len() as u64);
        if number >= newest && kept.most > 0 {
            return Ok(());
        }
        let key = key.to_vec();
        committed.check(shared, TableId::CHANGES, Some(&key), Access::Delete)?;
        own.changes.delete(txn, &key).map_err(error)?;
        kept.bytes = kept.bytes.saturating_sub(len);
        kept.oldest = number + 1;
    }
    Ok(())
}
