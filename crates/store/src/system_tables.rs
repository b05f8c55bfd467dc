//! System tables: settings, kept changes and times of expiry. They are created when a feature first
//! needs them; a store of plain tables has none.

use crate::environment::Dbi;
use crate::error::{Error, Result};
use crate::pages::TableId;
use crate::read::View;
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
    pub(crate) fn sequence(&self, view: &View<'_>) -> Result<u64> {
        Ok(self.words::<1>(view, layout::SEQUENCE_KEY)?.map_or(0, |[sequence]| sequence))
    }

    pub(crate) fn put_sequence(&self, txn: &mut RwTxn<'_>, sequence: u64) -> heed::Result<()> {
        self.settings.put(txn, layout::SEQUENCE_KEY, &sequence.to_le_bytes())
    }

    /// Returns the record of kept changes; `None` if none are kept.
    pub(crate) fn kept(&self, view: &View<'_>) -> Result<Option<Kept>> {
        let words = self.words::<{ layout::KEEP_WORDS }>(view, layout::KEEP_KEY)?;
        Ok(words.map(|[max, max_bytes, oldest, bytes]| Kept { max, max_bytes, oldest, bytes }))
    }

    pub(crate) fn put_kept(&self, txn: &mut RwTxn<'_>, kept: Kept) -> heed::Result<()> {
        let Kept { max, max_bytes, oldest, bytes } = kept;
        let words = [max, max_bytes, oldest, bytes].map(u64::to_le_bytes);
        self.settings.put(txn, layout::KEEP_KEY, words.as_flattened())
    }

    pub(crate) fn remove_kept(&self, txn: &mut RwTxn<'_>) -> heed::Result<()> {
        self.settings.delete(txn, layout::KEEP_KEY).map(|_| ())
    }

    pub(crate) fn kind(&self, view: &View<'_>, table: &str) -> Result<Kind> {
        let flags = self.words::<1>(view, &table_key(table))?.map_or(0, |[flags]| flags);
        Ok(if flags & layout::STAMPED == 0 { Kind::Plain } else { Kind::Stamped })
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

    /// Returns an error if a later version wrote the settings.
    pub(crate) fn check_format(&self, view: &View<'_>) -> Result<()> {
        match self.words::<1>(view, layout::FORMAT_KEY)? {
            Some([found]) if found != layout::FORMAT => {
                Err(Error::decode("settings of format 1", format!("format {found}")))
            }
            _ => Ok(()),
        }
    }

    /// Reads a record of `N` words; `None` if it does not exist.
    fn words<const N: usize>(&self, view: &View<'_>, key: &[u8]) -> Result<Option<[u64; N]>> {
        let record = view.system_row(TableId::SETTINGS, self.settings, key)?;
        let Some(record) = record else { return Ok(None) };
        let (words, rest) = record.as_chunks::<8>();
        match <[[u8; 8]; N]>::try_from(words) {
            Ok(words) if rest.is_empty() => Ok(Some(words.map(u64::from_le_bytes))),
            _ => {
                let found = format!("{} bytes in {}", record.len(), key.escape_ascii());
                Err(Error::decode("whole words in the store's settings", found))
            }
        }
    }
}

pub(crate) fn table_key(table: &str) -> Vec<u8> {
    [layout::TABLE_PREFIX, table.as_bytes()].concat()
}
