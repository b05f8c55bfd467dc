//! Nuthatch's snapshots, either mapped from the page cache or copied into huge pages.

use crate::Result;
use crate::rows::{Rows, Value as RowValue};
use crate::system::{BATCH, Built, Reader, System, Tally, first_byte};
use nuthatch_snapshot::{CowValue, OpenOptions, Residency, Snapshot, Value, WriterOptions};
use std::path::Path;

const FILE: &str = "rows.nut";

/// A snapshot. `HUGE` selects huge pages.
#[derive(Debug)]
pub struct Nuthatch<const HUGE: bool>(Snapshot);

impl<const HUGE: bool> System for Nuthatch<HUGE> {
    const NAME: &'static str = if HUGE { "nuthatch-huge" } else { "nuthatch" };
    const FOLDER: &'static str = "nuthatch";

    type Reader<'a> = SnapshotReader<'a>;

    fn build(rows: &Rows, folder: &Path) -> Result<Built<Self>> {
        let mut writer = WriterOptions::new().create(folder.join(FILE))?;
        for (key, value) in rows.iter() {
            let value = match value {
                RowValue::Text(text) => Value::String(text),
                RowValue::Vector(floats) => Value::F32List(floats),
            };
            writer.insert(key.as_bytes(), value)?;
        }
        writer.finish()?;
        Ok(Built::Files)
    }

    fn open(folder: &Path) -> Result<Self> {
        let residency = if HUGE { Residency::HugePages } else { Residency::Mapped };
        Ok(Self(OpenOptions::new().residency(residency).open(folder.join(FILE))?))
    }

    fn reader(&self) -> Result<SnapshotReader<'_>> {
        Ok(SnapshotReader { snapshot: &self.0, values: [const { None }; BATCH] })
    }
}

/// A reader of a snapshot.
#[derive(Debug)]
pub struct SnapshotReader<'a> {
    snapshot: &'a Snapshot,
    values: [Option<CowValue<'a>>; BATCH],
}

/// Returns the first byte of a text, or `None` for a value of another type.
#[inline]
fn first_byte_of(value: &CowValue<'_>) -> Option<u8> {
    match value.as_value() {
        Value::String(text) => Some(first_byte(text.as_bytes())),
        _ => None,
    }
}

impl Reader for SnapshotReader<'_> {
    const BATCHES: bool = true;

    #[inline]
    fn text(&mut self, key: &[u8]) -> Result<Option<u8>> {
        Ok(self.snapshot.get_string(key)?.map(|text| first_byte(text.as_bytes())))
    }

    #[inline]
    fn vector(&mut self, key: &[u8]) -> Result<Option<f32>> {
        Ok(self.snapshot.get_f32_list(key)?.and_then(|floats| floats.first().copied()))
    }

    #[inline]
    fn texts(&mut self, keys: &[&[u8]]) -> Result<Tally> {
        self.snapshot.get_many(keys, &mut self.values)?;
        let mut tally = Tally::default();
        for value in &self.values[..keys.len()] {
            tally.add(value.as_ref().and_then(first_byte_of));
        }
        Ok(tally)
    }
}
