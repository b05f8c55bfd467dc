//! The first entries of a job, without a snapshot.

use crate::build::RowPlace;
use crate::error::Result;
use crate::interruption::Interruption;
use crate::job::{Job, Source};
use crate::sources::{self, MakeReceiver, RowReceiver, Stop};
use nuthatch_import::RowSink;
use nuthatch_rows::{Mapper, Row};
use nuthatch_snapshot::{OwnedValue, Value};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

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
/// Returns [`Error::Source`](crate::Error::Source) if a source cannot be read, or has a row that
/// cannot be stored, and [`Error::Interrupted`](crate::Error::Interrupted) after `interrupted` was
/// set.
pub fn preview(job: &Job, rows: u64, interrupted: &Arc<AtomicBool>) -> Result<Vec<PreviewedEntry>> {
    let interruption = &Interruption(Arc::clone(interrupted));
    let previewed = preview_all(job, rows, interruption);
    // Whatever failed then is a consequence.
    interruption.check()?;
    previewed
}

fn preview_all(job: &Job, rows: u64, interruption: &Interruption) -> Result<Vec<PreviewedEntry>> {
    let entries = Mutex::new(Vec::new());
    // A session each: the end of a session ends a query whose other rows are not needed.
    for source in &job.sources {
        for group in &mut sources::open(std::slice::from_ref(source), interruption)? {
            let source = Source { readers: 1, split: None, ..source.clone() };
            let make: Box<MakeReceiver<'_>> = Box::new(|| {
                Box::new(Preview {
                    source: &source,
                    place: RowPlace::new(source.name()),
                    mapper: None,
                    max_rows: rows,
                    rows: 0,
                    entries: &entries,
                })
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
    place: RowPlace,
    mapper: Option<Mapper>,
    max_rows: u64,
    rows: u64,
    entries: &'a Mutex<Vec<PreviewedEntry>>,
}

impl RowReceiver for Preview<'_> {
    fn set_columns(&mut self, names: &[String]) -> Result<(), Stop> {
        self.mapper = Some(self.source.entries.mapper(self.place.name(), names)?);
        Ok(())
    }

    fn begin_file(&mut self, name: &str) {
        self.place.begin_file(name, self.rows);
    }

    fn row(&mut self, row: &dyn Row) -> Result<(), Stop> {
        if self.rows == self.max_rows {
            return Err(Stop::Enough);
        }
        self.rows += 1;
        let Some(mapper) = &mut self.mapper else { return Ok(()) };
        let Ok(mut entries) = self.entries.lock() else { return Err(Stop::Enough) };
        let mut sink = PreviewSink { source: self.source.number, entries: &mut entries };
        let added = mapper.add(self.rows, row, &mut sink);
        added.map_err(|fault| self.place.fault(self.rows, fault))?;
        if self.rows == self.max_rows { Err(Stop::Enough) } else { Ok(()) }
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
