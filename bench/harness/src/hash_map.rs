//! The baseline of all ratios: a hash map in memory.

use crate::Result;
use crate::rows::Rows;
use crate::system::{Built, Reader, System, first_byte, first_float};
use std::path::Path;

/// A `hashbrown` map with its default hasher, from boxed keys to boxed values.
#[derive(Debug)]
pub struct HashMap(hashbrown::HashMap<Box<[u8]>, Box<[u8]>>);

impl System for HashMap {
    const NAME: &'static str = "hashbrown";

    type Reader<'a> = &'a Self;

    fn build(rows: &Rows, _: &Path) -> Result<Built<Self>> {
        let mut map = hashbrown::HashMap::with_capacity(rows.len());
        let mut scratch = Vec::new();
        for (key, value) in rows.iter() {
            map.insert(key.as_bytes().into(), value.bytes(&mut scratch).into());
        }
        Ok(Built::Memory(Self(map)))
    }

    fn open(_: &Path) -> Result<Self> {
        Err("a hash map has no files to open".into())
    }

    fn reader(&self) -> Result<&Self> {
        Ok(self)
    }
}

impl Reader for &HashMap {
    #[inline]
    fn text(&mut self, key: &[u8]) -> Result<Option<u8>> {
        Ok(self.0.get(key).map(|value| first_byte(value)))
    }

    #[inline]
    fn vector(&mut self, key: &[u8]) -> Result<Option<f32>> {
        Ok(self.0.get(key).and_then(|value| first_float(value)))
    }
}
