//! The first entries of a job, without a snapshot.

use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::{Job, Source};
use crate::sources::{self, MakeReceiver, RowReceiver, Stop};
use nuthatch_import::RowSink;
use nuthatch_rows::{Mapper, Row, RowFault};
use nuthatch_snapshot::{OwnedValue, Value};
use std::sync::{Mutex, PoisonError};

/// An entry as it would be stored.
#[derive(Clone, Debug)]
pub struct PreviewedEntry {
    /// The number of the source, from 1.
    pub source: u16,
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: OwnedValue,
}

/// Returns the entries of the first rows of each source, as they would be stored.
///
/// # Errors
///
/// Returns [`Error::Source`] if a source cannot be read, or has a row that cannot be stored.
pub fn preview(job: &Job, rows: u64) -> Result<Vec<PreviewedEntry>> {
    let entries = Mutex::new(Vec::new());
    for group in &mut sources::open(&job.sources, &Interruption::default())? {
        for index in group.sources.clone() {
            let source = Source { readers: 1, split: None, ..job.sources[index].clone() };
            let make: Box<MakeReceiver<'_>> = Box::new(|| {
                let mapper = None;
                Box::new(Preview { source: &source, mapper, rows_left: rows, entries: &entries })
            });
            match group.session.read(&source, None, &*make) {
                Ok(()) | Err(Stop::Enough) => {}
                Err(Stop::Fault(error)) => return Err(error),
            }
        }
    }
    let mut entries = entries.into_inner().unwrap_or_else(PoisonError::into_inner);
    entries.sort_by_key(|entry: &PreviewedEntry| entry.source);
    Ok(entries)
}

struct Preview<'a> {
    source: &'a Source,
    mapper: Option<Mapper>,
    rows_left: u64,
    entries: &'a Mutex<Vec<PreviewedEntry>>,
}

impl RowReceiver for Preview<'_> {
    fn set_columns(&mut self, names: &[String]) -> Result<(), Stop> {
        self.mapper = Some(self.source.entries.mapper(&self.source.name(), names)?);
        Ok(())
    }

    fn row(&mut self, row: &dyn Row) -> Result<(), Stop> {
        let Some(left) = self.rows_left.checked_sub(1) else { return Err(Stop::Enough) };
        self.rows_left = left;
        let Some(mapper) = &mut self.mapper else { return Ok(()) };
        let Ok(mut entries) = self.entries.lock() else { return Err(Stop::Enough) };
        let mut sink = PreviewSink { source: self.source.number, entries: &mut entries };
        mapper.add(0, row, &mut sink).map_err(|fault| match fault {
            RowFault::Row(message) => Error::source(&self.source.name(), message).into(),
            RowFault::Sink(error) => Stop::Fault(error.into()),
        })?;
        if left == 0 { Err(Stop::Enough) } else { Ok(()) }
    }
}

struct PreviewSink<'a> {
    source: u16,
    entries: &'a mut Vec<PreviewedEntry>,
}

impl RowSink for PreviewSink<'_> {
    fn row(
        &mut self,
        _: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        let (source, value) = (self.source, OwnedValue::from(value));
        self.entries.push(PreviewedEntry { source, key: key.to_vec(), value });
        Ok(())
    }
}
