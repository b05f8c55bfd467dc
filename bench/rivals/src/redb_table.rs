//! redb as a key-value store: one table in one file.

use nuthatch_bench::{Built, Reader, Result, Rows, System, first_byte, first_float};
use redb::{Database, ReadOnlyDatabase, ReadOnlyTable, ReadableDatabase, TableDefinition};
use std::path::Path;

const FILE: &str = "rows.redb";
const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");

/// Size of redb's cache in bytes. redb reads through this cache instead of a map, so the cache has
/// room for all data.
const CACHE_LEN: usize = 8 << 30;

pub(crate) struct Redb(ReadOnlyDatabase);

impl System for Redb {
    const NAME: &'static str = "redb";
    const ORDERED: bool = true;

    type Reader<'a> = RedbReader;

    fn build(rows: &Rows, folder: &Path) -> Result<Built<Self>> {
        let mut database =
            Database::builder().set_cache_size(CACHE_LEN).create(folder.join(FILE))?;
        let transaction = database.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            let mut scratch = Vec::new();
            for (key, value) in rows.in_key_order() {
                table.insert(key.as_bytes(), value.bytes(&mut scratch))?;
            }
        }
        transaction.commit()?;
        database.compact()?;
        Ok(Built::Files)
    }

    fn open(folder: &Path) -> Result<Self> {
        let mut builder = Database::builder();
        Ok(Self(builder.set_cache_size(CACHE_LEN).open_read_only(folder.join(FILE))?))
    }

    fn reader(&self) -> Result<RedbReader> {
        Ok(RedbReader(self.0.begin_read()?.open_table(TABLE)?))
    }
}

pub(crate) struct RedbReader(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Reader for RedbReader {
    #[inline]
    fn text(&mut self, key: &[u8]) -> Result<Option<u8>> {
        Ok(self.0.get(key)?.map(|value| first_byte(value.value())))
    }

    #[inline]
    fn vector(&mut self, key: &[u8]) -> Result<Option<f32>> {
        Ok(self.0.get(key)?.and_then(|value| first_float(value.value())))
    }
}
