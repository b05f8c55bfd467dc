//! The map of the crate fst. It stores a number for each key, which refers to the value in a second
//! file. This file contains unsafe code, which maps the two files.

use fst::{Map, MapBuilder};
use memmap2::Mmap;
use nuthatch_bench::{Built, Reader, Result, Rows, System, first_byte, first_float};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const KEYS: &str = "keys.fst";
const VALUES: &str = "values";

/// The value of a key is an offset in the second file, with the length in these low bits.
const LEN_BITS: u32 = 16;

pub(crate) struct Fst {
    map: Map<Mmap>,
    values: Mmap,
}

impl System for Fst {
    const NAME: &'static str = "fst";
    const ORDERED: bool = true;

    type Reader<'a> = &'a Self;

    fn build(rows: &Rows, folder: &Path) -> Result<Built<Self>> {
        let mut builder = MapBuilder::new(BufWriter::new(File::create(folder.join(KEYS))?))?;
        let mut values = BufWriter::new(File::create(folder.join(VALUES))?);
        let mut scratch = Vec::new();
        let mut offset = 0;
        for (key, value) in rows.in_key_order() {
            let value = value.bytes(&mut scratch);
            let len = u64::from(u16::try_from(value.len())?);
            values.write_all(value)?;
            builder.insert(key, offset << LEN_BITS | len)?;
            offset += len;
        }
        builder.into_inner()?.into_inner()?.sync_all()?;
        values.into_inner()?.sync_all()?;
        Ok(Built::Files)
    }

    fn open(folder: &Path) -> Result<Self> {
        let map = Map::new(mapped(&folder.join(KEYS))?)?;
        Ok(Self { map, values: mapped(&folder.join(VALUES))? })
    }

    fn reader(&self) -> Result<&Self> {
        Ok(self)
    }
}

fn mapped(path: &Path) -> Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the file was created for this run, and no process writes to it after this point.
    Ok(unsafe { Mmap::map(&file)? })
}

impl Fst {
    #[inline]
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.map.get(key)?;
        let (offset, len) = (place >> LEN_BITS, place & ((1 << LEN_BITS) - 1));
        self.values.get(usize::try_from(offset).ok()?..)?.get(..usize::try_from(len).ok()?)
    }
}

impl Reader for &Fst {
    #[inline]
    fn text(&mut self, key: &[u8]) -> Result<Option<u8>> {
        Ok(self.get(key).map(first_byte))
    }

    #[inline]
    fn vector(&mut self, key: &[u8]) -> Result<Option<f32>> {
        Ok(self.get(key).and_then(first_float))
    }
}
