//! System tables: settings, kept changes and times of expiry. They are created when a feature first
//! needs them; a store of plain tables has none.

use crate::environment::Dbi;
use crate::table::Kind;
use heed::RwTxn;

/// Names and keys, as in `docs/formats/store.md`.
pub(crate) mod layout {
    pub(crate) const SETTINGS: &str = "nuthatch.settings";
    pub(crate) const CHANGES: &str = "nuthatch.changes";
    pub(crate) const EXPIRY: &str = "nuthatch.expiry";

    pub(crate) const FORMAT_KEY: &[u8] = b"format";
    pub(crate) const SEQUENCE_KEY: &[u8] = b"sequence";
    pub(crate) const KEEP_KEY: &[u8] = b"keep";
    pub(crate) const TABLE_PREFIX: &[u8] = b"table:";

    /// The version of the format on that page.
    pub(crate) const FORMAT: u64 = 1;
    /// A flag in the record of a table: its rows have stamps.
    pub(crate) const STAMPED: u64 = 1;
    /// The number of words in the record of kept changes.
    pub(crate) const KEEP_WORDS: usize = 4;
}

/// The system tables of a store.
#[derive(Clone, Copy)]
pub(crate) struct SystemTables {
    pub(crate) settings: Dbi,
    pub(crate) changes: Dbi,
    pub(crate) expiry: Dbi,
}

/// The limits of kept changes, and the changes that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) max: u64,
    pub(crate) max_bytes: u64,
    /// The number of the oldest kept change, or of the next change if none is kept.
    pub(crate) oldest: u64,
    /// Bytes of the kept changes.
    pub(crate) bytes: u64,
}

impl SystemTables {
    pub(crate) fn put_sequence(&self, txn: &mut RwTxn<'_>, sequence: u64) -> heed::Result<()> {
        self.settings.put(txn, layout::SEQUENCE_KEY, &sequence.to_le_bytes())
    }

    pub(crate) fn put_kept(&self, txn: &mut RwTxn<'_>, kept: Kept) -> heed::Result<()> {
        let Kept { max, max_bytes, oldest, bytes } = kept;
        let words = [max, max_bytes, oldest, bytes].map(u64::to_le_bytes);
        self.settings.put(txn, layout::KEEP_KEY, words.as_flattened())
    }

    pub(crate) fn remove_kept(&self, txn: &mut RwTxn<'_>) -> heed::Result<()> {
        self.settings.delete(txn, layout::KEEP_KEY).map(|_| ())
    }

    pub(crate) fn put_kind(
        &self,
        txn: &mut RwTxn<'_>,
        table: &str,
        kind: Kind,
    ) -> heed::Result<()> {
        let flags = if kind == Kind::Stamped { layout::STAMPED } else { 0 };
        self.settings.put(txn, &table_key(table), &flags.to_le_bytes())
    }
}

pub(crate) fn table_key(table: &str) -> Vec<u8> {
    [layout::TABLE_PREFIX, table.as_bytes()].concat()
}
