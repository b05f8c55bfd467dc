//! The Python class that builds a snapshot.

use super::failure::{argument, closed, exception, raised};
use super::keys::{NO_KEY, key_bytes};
use super::rows::{Mismatch, RowBuffer, with_value};
use super::typed::type_of_name;
use crate::convert::{KeywordArguments, repr_fields};
use crate::runtime::ProcessBound;
use nuthatch_snapshot::{
    Compression, Error, OnDuplicate, Summary, ValueType, Writer, WriterOptions,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The result of a build.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotSummary {
    /// Number of entries.
    entries: u64,
    /// Number of rows that were added, duplicates included.
    rows: u64,
    /// Length of the file in bytes; for a set, of all shards without the manifest.
    file_bytes: u64,
    /// Sum of the lengths of all keys in bytes.
    key_bytes: u64,
    /// Sum of the lengths of all values in bytes, uncompressed.
    value_bytes: u64,
    /// Sum of the lengths of all stored values in bytes. A shared value counts once.
    stored_value_bytes: u64,
}

repr_fields! {
    SnapshotSummary: entries rows file_bytes key_bytes value_bytes stored_value_bytes;
}

impl From<Summary> for SnapshotSummary {
    fn from(summary: Summary) -> Self {
        Self {
            entries: summary.entries,
            rows: summary.rows,
            file_bytes: summary.file_len,
            key_bytes: summary.key_bytes,
            value_bytes: summary.value_bytes,
            stored_value_bytes: summary.stored_value_bytes,
        }
    }
}

/// A builder of a snapshot. It takes rows in any order, and publishes the file at its path when it
/// is finished, in place of the file that is there. All threads can use it at the same time. In a
/// child made by `fork`, it is closed.
///
/// As a context manager, it finishes at the end of the block; after an exception it writes nothing.
///
/// Args:
///     `path`: The path of the new file.
///     `options`: Settings of `nuthatch.SnapshotWriterOptions`.
#[pyclass(frozen, weakref, module = "nuthatch")]
pub(crate) struct SnapshotWriter {
    path: PathBuf,
    // Locked only while attached to the interpreter, and so is `fork`. No Python code runs while it
    // is locked. A child made by `fork` must not remove the temporary file of its parent.
    state: Mutex<State>,
}

struct State {
    /// `None` after the end.
    writer: Option<ProcessBound<Writer>>,
    /// Number of rows that were added.
    rows: u64,
}

pub(super) fn writer_options(
    py: Python<'_>,
    arguments: &KeywordArguments<'_>,
) -> PyResult<WriterOptions> {
    let mut options = WriterOptions::new();
    if let Some(word) = arguments.take::<String>("on_duplicate")? {
        options = options.on_duplicate(match word.as_str() {
            "error" => OnDuplicate::Error,
            "first" => OnDuplicate::First,
            "last" => OnDuplicate::Last,
            _ => {
                let expected = "expected error, first or last";
                return Err(argument(py, format!("on_duplicate: {expected}, found {word:?}")));
            }
        });
    }
    let level = arguments.take::<i32>("level")?;
    match arguments.take::<String>("compress")?.as_deref() {
        None if level.is_some() => {
            return Err(argument(py, "level: expected compress=\"zstd\" with it".to_owned()));
        }
        None => {}
        Some("zstd") => {
            let level = level.unwrap_or(3);
            if !(1..=22).contains(&level) {
                return Err(argument(py, format!("level: expected 1 to 22, found {level}")));
            }
            options = options.compression(Compression::Zstd { level });
        }
        Some(word) => {
            return Err(argument(py, format!("compress: expected zstd, found {word:?}")));
        }
    }
    if let Some(bytes) = arguments.take("memory")? {
        options = options.memory(bytes);
    }
    if let Some(threads) = arguments.take("threads")? {
        options = options.threads(threads);
    }
    if let Some(seed) = arguments.take("seed")? {
        options = options.seed(seed);
    }
    if let Some(shards) = arguments.take("shards")? {
        options = options.shards(shards);
    }
    Ok(options)
}

/// Takes the metadata: a mapping, or pairs of names and values.
pub(super) fn take_metadata(
    py: Python<'_>,
    arguments: &KeywordArguments<'_>,
) -> PyResult<Vec<(String, Vec<u8>)>> {
    let Some(pairs) = arguments.take::<Bound<'_, PyAny>>("metadata")? else {
        return Ok(Vec::new());
    };
    let metadata = py.get_type::<PyDict>().call1((pairs,))?.cast_into::<PyDict>()?;
    let pairs = metadata.iter();
    pairs.map(|(name, value)| Ok((name.extract()?, metadata_bytes(&value)?.to_vec()))).collect()
}

fn metadata_bytes<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    key_bytes(value).map_err(|_| super::failure::other_class("metadata", "str or bytes", value))
}

impl SnapshotWriter {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a row, whose errors name it.
    fn insert_row(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        requested: Option<ValueType>,
        buffer: &mut RowBuffer,
    ) -> PyResult<()> {
        let py = key.py();
        let Ok(bytes) = key_bytes(key) else {
            let found = key.get_type().name()?;
            let row = self.lock().rows;
            let message = format!("row {row}: key: expected str or bytes, found {found}");
            return Err(argument(py, message));
        };
        if std::ptr::eq(bytes, &raw const NO_KEY[..]) {
            let row = self.lock().rows;
            let message = format!("row {row}: key: expected text, found an unpaired surrogate");
            return Err(argument(py, message));
        }
        let insert = |value: nuthatch_snapshot::Value<'_>| {
            let mut state = self.lock();
            let State { writer, rows } = &mut *state;
            let writer = writer.as_mut().and_then(ProcessBound::in_process_mut)?;
            let inserted = writer.insert(bytes, value);
            *rows += u64::from(inserted.is_ok());
            Some(inserted)
        };
        match with_value(value, requested, buffer, insert) {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(Some(Err(error))) => Err(self.row_error(py, bytes, &error)),
            Ok(None) => Err(closed(py, "writer")),
            Err(Mismatch { expected, found }) => {
                let (row, key) = (self.lock().rows, bytes.escape_ascii());
                let message =
                    format!("row {row}, key \"{key}\": value: expected {expected}, found {found}");
                Err(argument(py, message))
            }
        }
    }

    #[cold]
    fn row_error(&self, py: Python<'_>, key: &[u8], error: &Error) -> PyErr {
        let exception = exception(py, error);
        let shown = &key[..key.len().min(64)];
        let note = format!("row {}, key \"{}\"", self.lock().rows, shown.escape_ascii());
        // The exception is reported without the note if it takes none.
        let _ = exception.value(py).call_method1("add_note", (note,));
        exception
    }

    fn take(&self) -> Option<Writer> {
        let writer = self.lock().writer.take();
        writer.and_then(|mut writer| writer.take())
    }
}

#[pymethods]
impl SnapshotWriter {
    #[new]
    #[pyo3(signature = (path, **options))]
    fn new(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let copy = options.map(PyDictMethods::copy).transpose()?;
        let arguments = KeywordArguments::new("SnapshotWriter", copy.as_ref());
        let settings = writer_options(py, &arguments)?;
        let metadata = take_metadata(py, &arguments)?;
        arguments.finish()?;
        let mut writer = raised(py, py.detach(|| settings.create(&path)))?;
        for (name, value) in &metadata {
            raised(py, writer.set_metadata(name, value))?;
        }
        let state = State { writer: Some(ProcessBound::new(writer)), rows: 0 };
        Ok(Self { path, state: Mutex::new(state) })
    }

    /// Adds a row. The type of the value follows from its class: ``bool``, ``int``, ``float``,
    /// ``str``, ``bytes``, or a list, tuple or array of numbers or strings. Integers are from -2^63
    /// to 2^63 - 1. Key and value are copied.
    ///
    /// Args:
    ///     `key`: The key, at most 65,535 bytes.
    ///     `value`: The value.
    ///     `value_type`: The type of the value, such as ``list of f32``, if it does not follow from
    ///         its class. With ``f64`` and lists of floats, an `int` from -2^53 to 2^53 becomes a
    ///         float; with ``list of f32``, floats are rounded to 32 bits, and a finite float
    ///         beyond their range is an error.
    ///
    /// Raises:
    ///     `ArgumentError`: The key or the value has another class, or exceeds a limit. The message
    ///         has the number of the row, from 0.
    ///     `ClosedError`: The writer was finished or abandoned.
    #[pyo3(signature = (key, value, value_type=None))]
    fn insert(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        value_type: Option<&str>,
    ) -> PyResult<()> {
        self.insert_row(key, value, requested(py, value_type)?, &mut RowBuffer::default())
    }

    /// Adds the pairs of an iterable.
    #[pyo3(signature = (pairs, value_type))]
    fn _insert_pairs(
        &self,
        py: Python<'_>,
        pairs: &Bound<'_, PyAny>,
        value_type: Option<&str>,
    ) -> PyResult<()> {
        let requested = requested(py, value_type)?;
        let mut buffer = RowBuffer::default();
        for pair in pairs.try_iter()? {
            let pair = pair?;
            let tuple = match pair.cast::<PyTuple>() {
                Ok(tuple) => Some(tuple.clone()),
                Err(_) => pair.cast::<PyList>().ok().map(PyListMethods::to_tuple),
            };
            let Some(tuple) = tuple.filter(|tuple| tuple.len() == 2) else {
                let (row, found) = (self.lock().rows, pair.get_type().name()?);
                let message = format!("row {row}: expected a pair (key, value), found {found}");
                return Err(argument(py, message));
            };
            self.insert_row(&tuple.get_item(0)?, &tuple.get_item(1)?, requested, &mut buffer)?;
        }
        Ok(())
    }

    /// Adds the rows of a ``dict``, of an iterable of pairs, or of two columns of a table of
    /// pandas, `PyArrow` or Polars.
    ///
    /// Args:
    ///     `source`: The rows.
    ///     `key`: Name of the column with the keys of a table; by default the first one.
    ///     `value`: Name of the column with the values of a table; by default the other one of two.
    ///     `value_type`: The type of all values, as for `add`.
    ///
    /// Raises:
    ///     `ArgumentError`: A row is not a pair, or its key or value is invalid. The rows before it
    ///         have been added.
    ///     `ClosedError`: The writer was finished or abandoned.
    #[pyo3(signature = (source, *, key=None, value=None, value_type=None))]
    fn insert_many(
        slf: &Bound<'_, Self>,
        source: &Bound<'_, PyAny>,
        key: Option<Bound<'_, PyAny>>,
        value: Option<Bound<'_, PyAny>>,
        value_type: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let add = slf.py().import("nuthatch.tables")?.getattr("add_rows")?;
        add.call1((slf, source, key, value, value_type))?;
        Ok(())
    }

    /// Sets a value of the metadata, which `Snapshot.metadata` returns. Replaces an earlier value
    /// of that name.
    ///
    /// Args:
    ///     `name`: The name, 1 to 255 bytes in UTF-8.
    ///     `value`: The value: `str`, which is stored as UTF-8, or `bytes`.
    ///
    /// Raises:
    ///     `ArgumentError`: The name has another length, or all metadata exceeds 1 MiB.
    fn set_metadata(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = metadata_bytes(value)?;
        let set = {
            let mut state = self.lock();
            let writer = state.writer.as_mut().and_then(ProcessBound::in_process_mut);
            writer.map(|writer| writer.set_metadata(name, bytes))
        };
        raised(py, set.ok_or_else(|| closed(py, "writer"))?)
    }

    /// Writes the file, syncs it and publishes it at its path. Other threads run Python code
    /// meanwhile. If it fails, the path is unchanged, unless the code of the error is
    /// ``not-durable``: then the new file is published, but a power failure may restore the old
    /// one. The writer is closed in any case.
    ///
    /// Returns:
    ///     The numbers of entries and bytes.
    ///
    /// Raises:
    ///     `ArgumentError`: A key has several rows, or a limit is exceeded.
    ///     `DamagedError`: The code is ``not-durable``.
    ///     `Error`: A system call failed, such as for a full disk; the code is ``io``.
    ///     `ClosedError`: The writer was finished or abandoned.
    fn finish(&self, py: Python<'_>) -> PyResult<SnapshotSummary> {
        let writer = self.take().ok_or_else(|| closed(py, "writer"))?;
        raised(py, py.detach(|| writer.finish())).map(SnapshotSummary::from)
    }

    /// Closes the writer without publishing a file, and removes its temporary files. Does nothing
    /// after `finish` or another call.
    fn abandon(&self, py: Python<'_>) {
        let writer = self.take();
        py.detach(|| drop(writer));
    }

    /// Returns the path of the new file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_none() {
            if self.lock().writer.is_some() {
                self.finish(py)?;
            }
        } else {
            self.abandon(py);
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.SnapshotWriter of {}>", self.path.display())
    }
}

fn requested(py: Python<'_>, name: Option<&str>) -> PyResult<Option<ValueType>> {
    let Some(name) = name else { return Ok(None) };
    match type_of_name(name) {
        None => {
            let message =
                format!("value_type: expected a type such as \"list of f32\", found {name:?}");
            Err(argument(py, message))
        }
        found => Ok(found),
    }
}
