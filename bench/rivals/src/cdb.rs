//! D. J. Bernstein's constant database, through the crate cdb2, which maps the file.

use cdb2::{CDB, CDBMake};
use nuthatch_bench::{Built, Reader, Result, Rows, System, first_byte, first_float};
use std::fs::File;
use std::path::Path;

const FILE: &str = "rows.cdb";

pub(crate) struct Cdb(CDB);

impl System for Cdb {
    const NAME: &'static str = "cdb";

    type Reader<'a> = &'a Self;

    fn build(rows: &Rows, folder: &Path) -> Result<Built<Self>> {
        let file = File::create(folder.join(FILE))?;
        let mut maker = CDBMake::new(file.try_clone()?)?;
        let mut scratch = Vec::new();
        for (key, value) in rows.iter() {
            maker.add(key.as_bytes(), value.bytes(&mut scratch))?;
        }
        maker.finish()?;
        file.sync_all()?;
        Ok(Built::Files)
    }

    fn open(folder: &Path) -> Result<Self> {
        Ok(Self(CDB::open(folder.join(FILE))?))
    }

    fn reader(&self) -> Result<&Self> {
        Ok(self)
    }
}

impl Reader for &Cdb {
    #[inline]
    fn text(&mut self, key: &[u8]) -> Result<Option<u8>> {
        let value = self.0.get(key).transpose()?;
        Ok(value.map(|value| first_byte(&value)))
    }

    #[inline]
    fn vector(&mut self, key: &[u8]) -> Result<Option<f32>> {
        let value = self.0.get(key).transpose()?;
        Ok(value.and_then(|value| first_float(&value)))
    }
}
