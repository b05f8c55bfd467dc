//! redb as an ordered store: one table in one file.

use nuthatch_bench::Result;
use nuthatch_bench::store::{Bounds, Ordered, Rival, StoreRows, Sum};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;

const FILE: &str = "rows.redb";
const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");

/// Size of redb's cache in bytes. redb reads through this cache instead of a map, so the cache has
/// room for all data.
const CACHE_LEN: usize = 8 << 30;

pub(crate) const REDB: Rival = Rival { name: "redb", load };

struct RedbStore(Database);

fn load(rows: StoreRows, folder: &Path) -> Result<Box<dyn Ordered>> {
    let database = Database::builder().set_cache_size(CACHE_LEN).create(folder.join(FILE))?;
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        rows.each(|key, value| {
            table.insert(key, value)?;
            Ok(())
        })?;
    }
    transaction.commit()?;
    Ok(Box::new(RedbStore(database)))
}

impl Ordered for RedbStore {
    fn scan(&self, bounds: Option<Bounds<'_>>) -> Result<Sum> {
        let table = self.0.begin_read()?.open_table(TABLE)?;
        let mut sum = Sum::default();
        let rows = match bounds {
            Some((from, before)) => table.range::<&[u8]>(from..before)?,
            None => table.iter()?,
        };
        for row in rows {
            let (key, value) = row?;
            sum.add(key.value(), value.value());
        }
        Ok(sum)
    }

    fn write(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let transaction = self.0.begin_write()?;
        transaction.open_table(TABLE)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }
}
