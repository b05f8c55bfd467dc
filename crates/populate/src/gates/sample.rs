//! A sample of rows that is read again, and compared with the snapshot.

use crate::build::SampledRow;
use crate::error::Result;
use crate::gate_report::GateReport;
use crate::interruption::Interruption;
use crate::job::Source;
use crate::sources::{MakeReceiver, RowReceiver, Session, Stop};
use nuthatch_import::RowSink;
use nuthatch_rows::{CellBuffers, Literal, Mapper, Row, RowFault};
use nuthatch_snapshot::{Scratch, Snapshot, Value};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Number of rows that one query asks for.
const ROWS_PER_QUERY: usize = 100;
/// Maximum number of differences that are shown.
const MAX_SHOWN: usize = 3;

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    rows: u64,
    entries: u64,
    differences: u64,
    shown: Vec<String>,
}

/// Reads the rows of a sample again, and compares their entries with the snapshot. `wanted` is the
/// size that the sample should have.
pub(super) fn check(
    session: &mut dyn Session,
    source: &Source,
    (snapshot, interruption): (&Snapshot, &Interruption),
    (sample, wanted): (&[SampledRow], usize),
) -> Result<GateReport> {
    let report = |found: String, passed: bool| {
        let expected = format!("{wanted} rows of source {} as they are stored", source.number);
        GateReport { gate: "sample", expected, found, passed }
    };
    let sample = &sample[..sample.len().min(wanted)];
    if sample.is_empty() {
        let found = "no row whose key can be looked up".to_owned();
        return Ok(report(found, true));
    }
    let compared = Mutex::new(Compared::default());
    let wanted_rows: HashSet<&SampledRow> = sample.iter().collect();
    let make: Box<MakeReceiver<'_>> = Box::new(|| {
        let mapper = None;
        let receiver = Comparison {
            source,
            snapshot,
            interruption,
            wanted: &wanted_rows,
            compared: &compared,
            mapper,
            cells: CellBuffers::default(),
        };
        Box::new(receiver)
    });
    let reads: Vec<Option<String>> = match session.dialect().zip(source.query.as_deref()) {
        Some((dialect, query)) => {
            let columns: Vec<&str> = source.entries.key.columns().collect();
            let queries = sample.chunks(ROWS_PER_QUERY).map(|rows| {
                let rows: Vec<&[Literal]> = rows.iter().map(Vec::as_slice).collect();
                Some(dialect.query_of_rows(query, &columns, &rows))
            });
            queries.collect()
        }
        // All files are read again.
        None => vec![None],
    };
    for query in reads {
        match session.read(source, query.as_deref(), &*make) {
            Ok(()) | Err(Stop::Enough) => {}
            Err(Stop::Fault(error)) => return Err(error),
        }
    }
    drop(make);
    let compared = compared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let missing = (wanted_rows.len() as u64).saturating_sub(compared.rows);
    let passed = compared.differences == 0 && missing == 0;
    let mut found = format!("{} entries of {} rows", compared.entries, compared.rows);
    if passed {
        found.push_str(" are equal");
    } else {
        found = format!(
            "{found}: {} differ, {missing} rows were not found again",
            compared.differences
        );
        for difference in &compared.shown {
            found = format!("{found}; {difference}");
        }
    }
    Ok(report(found, passed))
}

/// Compares the rows of the sample.
struct Comparison<'a> {
    source: &'a Source,
    snapshot: &'a Snapshot,
    interruption: &'a Interruption,
    wanted: &'a HashSet<&'a SampledRow>,
    compared: &'a Mutex<Compared>,
    mapper: Option<Mapper>,
    cells: CellBuffers,
}

impl Comparison<'_> {
    /// Returns whether a row is in the sample.
    fn is_wanted(&mut self, row: &dyn Row) -> bool {
        let Some(mapper) = &self.mapper else { return false };
        let literals = mapper.mapping().key_literals(row, &mut self.cells);
        literals.is_some_and(|row| self.wanted.contains(&row))
    }
}

impl RowReceiver for Comparison<'_> {
    fn set_columns(&mut self, names: &[String]) -> Result<(), Stop> {
        self.mapper = Some(self.source.entries.mapper(&self.source.name(), names)?);
        Ok(())
    }

    fn row(&mut self, row: &dyn Row) -> Result<(), Stop> {
        self.interruption.check()?;
        if !self.is_wanted(row) {
            return Ok(());
        }
        let Some(mapper) = &mut self.mapper else { return Ok(()) };
        let Ok(mut compared) = self.compared.lock() else { return Err(Stop::Enough) };
        compared.rows += 1;
        let mut sink = CompareSink { snapshot: self.snapshot, compared: &mut compared };
        match mapper.add(0, row, &mut sink) {
            Ok(()) => Ok(()),
            Err(RowFault::Row(message)) => {
                Err(crate::Error::source(&self.source.name(), message).into())
            }
            Err(RowFault::Sink(error)) => Err(Stop::Fault(error.into())),
        }
    }
}

struct CompareSink<'a> {
    snapshot: &'a Snapshot,
    compared: &'a mut Compared,
}

impl RowSink for CompareSink<'_> {
    fn row(
        &mut self,
        _row: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        self.compared.entries += 1;
        let mut scratch = Scratch::new();
        let stored = self.snapshot.find(key)?;
        let stored = stored.as_ref().map(|stored| stored.decompress(&mut scratch)).transpose()?;
        // By their text, in which floats that are not numbers are equal.
        let is_equal = stored
            .is_some_and(|stored| stored == value || format!("{stored:?}") == format!("{value:?}"));
        if !is_equal {
            self.compared.differences += 1;
            if self.compared.shown.len() < MAX_SHOWN {
                let key = String::from_utf8_lossy(key).escape_debug().to_string();
                let text = match stored {
                    Some(_) => format!("\"{key}\" has another value"),
                    None => format!("\"{key}\" does not exist"),
                };
                self.compared.shown.push(text);
            }
        }
        Ok(())
    }
}
