//! Plain LMDB through heed. This file contains unsafe code, since mapping files with heed is
//! unsafe.

use super::rows::{Bounds, Ordered, StoreRows, Sum};
use crate::Result;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, PutFlags, WithTls};
use std::ops::Bound;
use std::path::Path;

/// An LMDB environment with one table.
#[derive(Debug)]
pub(super) struct Lmdb {
    env: Env<WithTls>,
    table: Database<'static, Bytes, Bytes>,
}

impl Lmdb {
    /// Creates a store with these rows, appended in key order and synced.
    pub(super) fn load(rows: StoreRows, folder: &Path) -> Result<Self> {
        let mut options = EnvOpenOptions::new();
        // The map size reserves address space only. Unused parts need no disk space.
        let room = (rows.bytes() * 4).next_multiple_of(1 << 20) + (1 << 30);
        options.map_size(room as usize).max_dbs(1);
        // SAFETY: the folder was created for this run, and no other process uses it.
        let env = unsafe { options.open(folder)? };
        let txn = env.write_txn()?;
        let table = env.create_databases_and_commit(txn, |opener, txn| {
            opener.create_database(txn, Some("rows")).map(CommitOrAbort::<_, ()>::Commit)
        })?;
        let table: Database<'static, Bytes, Bytes> = table.unwrap_commit();
        let mut txn = env.write_txn()?;
        rows.each(|key, value| {
            Ok(table.put_with_flags(&mut txn, PutFlags::APPEND, key, value)?)
        })?;
        txn.commit()?;
        Ok(Self { env, table })
    }
}

impl Ordered for Lmdb {
    fn scan(&self, bounds: Option<Bounds<'_>>) -> Result<Sum> {
        let txn = self.env.read_txn()?;
        let mut sum = Sum::default();
        if let Some((from, before)) = bounds {
            let bounds = (Bound::Included(from), Bound::Excluded(before));
            for row in self.table.range(&txn, &bounds)? {
                let (key, value) = row?;
                sum.add(key, value);
            }
        } else {
            for row in self.table.iter(&txn)? {
                let (key, value) = row?;
                sum.add(key, value);
            }
        }
        Ok(sum)
    }

    fn write(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        self.table.put(&mut txn, key, value)?;
        Ok(txn.commit()?)
    }
}
