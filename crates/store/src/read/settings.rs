//! Reads the settings of a store.

use crate::error::{Error, Result};
use crate::pages::TableId;
use crate::read::view::View;
use crate::table::Kind;
use crate::table::system_tables::{Kept, SystemTables, layout, table_key};

impl SystemTables {
    pub(crate) fn sequence(&self, view: &View<'_>) -> Result<u64> {
        Ok(self.words::<1>(view, layout::SEQUENCE_KEY)?.map_or(0, |[sequence]| sequence))
    }

    /// Returns the record of kept changes; `None` if none are kept.
    pub(crate) fn kept(&self, view: &View<'_>) -> Result<Option<Kept>> {
        let words = self.words::<{ layout::KEEP_WORDS }>(view, layout::KEEP_KEY)?;
        Ok(words.map(|[max, max_bytes, oldest, bytes]| Kept { max, max_bytes, oldest, bytes }))
    }

    pub(crate) fn kind(&self, view: &View<'_>, table: &str) -> Result<Kind> {
        let flags = self.words::<1>(view, &table_key(table))?.map_or(0, |[flags]| flags);
        Ok(if flags & layout::STAMPED == 0 { Kind::Plain } else { Kind::Stamped })
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
