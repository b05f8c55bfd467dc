//! Snapshots of data frames: each row becomes entries by a template of keys, as in a job of
//! `nuthatch populate`.

use super::failure::{argument, exception, raised};
use super::stream::record_batches;
use super::writer::{SnapshotSummary, take_metadata, writer_options};
use crate::convert::KeywordArguments;
use arrow_array::RecordBatch;
use nuthatch_import::RowSink;
use nuthatch_rows::arrow::{BatchRows, column_names};
use nuthatch_rows::{ColumnType, KeyTemplate, Mapper, Mapping, Nulls, RowFault};
use nuthatch_snapshot::{Value, Writer};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Number of rows between two checks for signals of Python, such as that of Ctrl-C.
const CHECK_ROWS: usize = 1 << 14;
/// The beginning of the name that pandas gives to the column of an index without a name.
const UNNAMED_INDEX: &str = "__index_level_";

/// How the rows of a table become entries.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    key: KeyTemplate,
    /// The columns with values; empty for all but those of the key.
    values: Vec<String>,
    types: BTreeMap<String, ColumnType>,
    nulls: Nulls,
}

impl Entries {
    /// Parses the arguments of a call.
    pub(super) fn parse(
        py: Python<'_>,
        key: &str,
        values: Option<Vec<String>>,
        types: Option<BTreeMap<String, String>>,
        nulls: &str,
    ) -> PyResult<Self> {
        let invalid = |message| argument(py, message);
        let parse = |(column, name): (String, String)| match ColumnType::parse(&name) {
            Ok(column_type) => Ok((column, column_type)),
            Err(message) => Err(invalid(format!("types: column \"{column}\": {message}"))),
        };
        let nulls = match nulls {
            "absent" => Nulls::Absent,
            "empty" => Nulls::Empty,
            "error" => Nulls::Error,
            found => {
                let expected = "expected absent, empty or error";
                return Err(invalid(format!("nulls: {expected}, found {found:?}")));
            }
        };
        Ok(Self {
            key: KeyTemplate::parse(key).map_err(invalid)?,
            values: values.unwrap_or_default(),
            types: types.into_iter().flatten().map(parse).collect::<PyResult<_>>()?,
            nulls,
        })
    }

    /// Returns the mapper for rows with these columns.
    pub(super) fn mapper(&self, names: &[String]) -> Result<Mapper, String> {
        let Self { key, values, types, nulls } = self;
        let is_unnamed_index = |name: &str| {
            name.starts_with(UNNAMED_INDEX) && !key.columns().any(|column| column == name)
        };
        let values = if values.is_empty() && names.iter().any(|name| is_unnamed_index(name)) {
            let others = names.iter().filter(|name| !is_unnamed_index(name));
            others.filter(|name| !key.columns().any(|column| column == *name)).cloned().collect()
        } else {
            values.clone()
        };
        Ok(Mapper::new(Arc::new(Mapping::new(names, key, &values, types, *nulls)?)))
    }
}

/// Passes entries to a writer. The position of an entry is the number of its row.
pub(super) struct WriterSink<'a>(pub(super) &'a mut Writer);

impl RowSink for WriterSink<'_> {
    fn row(
        &mut self,
        row: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        self.0.insert_with_position(row, key, value)
    }
}

/// The reason why a row was not added.
struct RowError {
    row: u64,
    fault: RowFault,
}

impl RowError {
    fn raise(self, py: Python<'_>) -> PyErr {
        let Self { row, fault } = self;
        match fault {
            RowFault::Row(message) => argument(py, format!("row {row}, {message}")),
            RowFault::Sink(nuthatch_snapshot::Error::Limit(limit)) => {
                let (what, max, found) = (limit.what, limit.max, limit.found);
                let message = format!("row {row}: {what}: expected at most {max}, found {found}");
                argument(py, message)
            }
            RowFault::Sink(error) => exception(py, &error),
        }
    }
}

/// Passes the entries of some rows to a sink. `first` is the number of the first row.
fn add_rows<S: RowSink>(
    mapper: &mut Mapper,
    batch: &RecordBatch,
    first: u64,
    sink: &mut S,
) -> Result<(), RowError> {
    for (row, number) in BatchRows::new(batch).iter().zip(first..) {
        let added = mapper.add(number, &row, sink);
        added.map_err(|fault| RowError { row: number, fault })?;
    }
    Ok(())
}

/// Passes the entries of a table to a sink, without the interpreter's lock. Returns the number of
/// rows.
pub(super) fn add_table<S: RowSink + Send>(
    table: &Bound<'_, PyAny>,
    entries: &Entries,
    sink: &mut S,
) -> PyResult<u64> {
    let py = table.py();
    let mut batches = record_batches(table)?;
    let names = column_names(&arrow_array::RecordBatchReader::schema(&batches));
    let mut mapper = entries.mapper(&names).map_err(|message| argument(py, message))?;
    let mut rows = 0_u64;
    while let Some(batch) = py.detach(|| batches.next()) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return Err(argument(py, format!("table: row {rows}: {error}"))),
        };
        for start in (0..batch.num_rows()).step_by(CHECK_ROWS) {
            let part = batch.slice(start, CHECK_ROWS.min(batch.num_rows() - start));
            let first = rows + start as u64;
            let added = py.detach(|| add_rows(&mut mapper, &part, first, sink));
            added.map_err(|error| error.raise(py))?;
            py.check_signals()?;
        }
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

/// Builds a snapshot of a table and publishes it at a path.
#[pyfunction]
#[pyo3(signature = (table, path, key, values, types, nulls, /, **options))]
pub(super) fn _write_snapshot(
    table: &Bound<'_, PyAny>,
    path: PathBuf,
    key: &str,
    values: Option<Vec<String>>,
    types: Option<BTreeMap<String, String>>,
    nulls: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<SnapshotSummary> {
    let py = table.py();
    let copy = options.map(PyDictMethods::copy).transpose()?;
    let arguments = KeywordArguments::new("write_snapshot", copy.as_ref());
    let settings = writer_options(py, &arguments)?;
    let metadata = take_metadata(py, &arguments)?;
    arguments.finish()?;
    let entries = Entries::parse(py, key, values, types, nulls)?;
    let mut writer = raised(py, py.detach(|| settings.create(&path)))?;
    for (name, value) in &metadata {
        raised(py, writer.set_metadata(name, value))?;
    }
    add_table(table, &entries, &mut WriterSink(&mut writer))?;
    raised(py, py.detach(|| writer.finish())).map(SnapshotSummary::from)
}
