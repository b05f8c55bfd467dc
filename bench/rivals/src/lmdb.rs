//! LMDB through heed. This file contains unsafe code, since mapping files with heed is unsafe.

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithTls};
use nuthatch_bench::{Built, Reader, Result, Rows, System, first_byte, first_float};
use std::path::Path;

/// An LMDB environment with the unnamed database only.
pub(crate) struct Lmdb {
    environment: Env<WithTls>,
    database: Database<'static, Bytes, Bytes>,
}

fn open(folder: &Path, map_len: usize) -> Result<Env<WithTls>> {
    let mut options = EnvOpenOptions::new();
    if map_len > 0 {
        options.map_size(map_len);
    }
    // SAFETY: disabling read-ahead affects only the disk reads of the system, not the results.
    unsafe { options.flags(EnvFlags::NO_READ_AHEAD) };
    // SAFETY: the folder was created for this run, and no other process uses it.
    Ok(unsafe { options.open(folder)? })
}

impl System for Lmdb {
    const NAME: &'static str = "lmdb";
    const ORDERED: bool = true;

    type Reader<'a> = LmdbReader<'a>;

    fn build(rows: &Rows, folder: &Path) -> Result<Built<Self>> {
        // The map size reserves address space only. Unused parts need no disk space.
        let environment = open(folder, (rows.bytes() * 8).next_multiple_of(1 << 20) + (1 << 24))?;
        let database = opened(&environment)?;
        let mut transaction = environment.write_txn()?;
        let mut scratch = Vec::new();
        for (key, value) in rows.in_key_order() {
            let value = value.bytes(&mut scratch);
            database.put_with_flags(&mut transaction, PutFlags::APPEND, key.as_bytes(), value)?;
        }
        transaction.commit()?;
        environment.prepare_for_closing().wait();
        Ok(Built::Files)
    }

    fn open(folder: &Path) -> Result<Self> {
        let environment = open(folder, 0)?;
        let database = opened(&environment)?;
        Ok(Self { environment, database })
    }

    fn reader(&self) -> Result<LmdbReader<'_>> {
        Ok(LmdbReader { transaction: self.environment.read_txn()?, database: self.database })
    }
}

/// Opens the unnamed database, which exists in every environment, so that nothing is written.
fn opened(environment: &Env<WithTls>) -> Result<Database<'static, Bytes, Bytes>> {
    let transaction = environment.write_txn()?;
    let opened = environment.create_databases_and_commit(transaction, |opener, transaction| {
        opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
    })?;
    Ok(opened.unwrap_commit())
}

pub(crate) struct LmdbReader<'a> {
    transaction: RoTxn<'a, WithTls>,
    database: Database<'static, Bytes, Bytes>,
}

impl Reader for LmdbReader<'_> {
    #[inline]
    fn text(&mut self, key: &[u8]) -> Result<Option<u8>> {
        let value = self.database.get(&self.transaction, key)?;
        Ok(value.map(first_byte))
    }

    #[inline]
    fn vector(&mut self, key: &[u8]) -> Result<Option<f32>> {
        Ok(self.database.get(&self.transaction, key)?.and_then(first_float))
    }
}
