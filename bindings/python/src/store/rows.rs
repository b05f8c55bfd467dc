//! Batches of rows in Python, in the memory map of the store or copied.

use super::bounds::Wanted;
use super::held::Held;
use crate::buffer::{Octets, Shown};
use crate::failure::Outcome;
use nuthatch_store::{Read, Row, Table};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyMemoryView, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Copied rows, in one contiguous buffer.
#[derive(Default)]
pub(crate) struct CopiedRows {
    /// Keys and values, one after the other.
    data: Vec<u8>,
    places: Vec<Place>,
    snapshot: u64,
    sequence: u64,
}

/// The location of a row: a key followed by its value.
struct Place {
    start: usize,
    key_len: u32,
    value_len: u32,
}

impl CopiedRows {
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.data.len();
        // Lengths in a store fit into 32 bits.
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        self.data.extend_from_slice(key);
        self.data.extend_from_slice(value);
        self.places.push(Place { start, key_len, value_len });
    }

    pub(crate) fn seen_at(self, snapshot: u64, sequence: u64) -> Self {
        Self { snapshot, sequence, ..self }
    }

    /// Copies the first rows of a scan within a transaction.
    pub(crate) fn read(txn: &impl Read, table: &Table, wanted: &Wanted) -> Outcome<Self> {
        let (scan, mut rows) = (wanted.scan(), Self::default());
        let most = wanted.batch_rows.unwrap_or(nuthatch_store::Scan::BATCH_ROWS).max(1);
        let bytes = wanted.batch_bytes.unwrap_or(nuthatch_store::Scan::BATCH_BYTES);
        txn.scan(table, &scan)?.visit(|key, value| {
            rows.push(key, value);
            rows.places.len() < most && rows.data.len() < bytes
        })?;
        Ok(rows)
    }

    fn of(lent: &nuthatch_store::RowBatch) -> Self {
        let mut rows = Self::default();
        lent.iter().for_each(|(key, value)| rows.push(key, value));
        // The sequence number is 0 if the transaction cannot read it.
        rows.seen_at(lent.snapshot_id(), lent.sequence().unwrap_or_default())
    }

    fn row(&self, index: usize) -> Option<Row<'_>> {
        let Place { start, key_len, value_len } = self.places.get(index)?;
        let value = start + *key_len as usize;
        let end = value + *value_len as usize;
        Some((self.data.get(*start..value)?, self.data.get(value..end)?))
    }
}

/// The rows of a batch, and the owner of their memory.
#[derive(Clone)]
pub(crate) enum Kept {
    /// Rows in the memory map of a store, which the read transaction of their scan protects.
    Lent(Arc<nuthatch_store::RowBatch>),
    Copied(Arc<CopiedRows>),
    /// Rows that a server sent.
    Sent(Arc<nuthatch_rpc::RowBatch>),
}

/// The exporter of a key or value of a batch to a `memoryview`.
struct Shows {
    kept: Kept,
    row: usize,
    of_value: bool,
}

impl Shown for Shows {
    fn bytes(&self) -> Option<&[u8]> {
        let (key, value) = self.kept.row(self.row)?;
        Some(if self.of_value { value } else { key })
    }
}

impl Kept {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Lent(rows) => rows.len(),
            Self::Copied(rows) => rows.places.len(),
            Self::Sent(rows) => rows.len(),
        }
    }

    pub(crate) fn row(&self, index: usize) -> Option<Row<'_>> {
        match self {
            Self::Lent(rows) => rows.get(index),
            Self::Copied(rows) => rows.row(index),
            Self::Sent(rows) => rows.get(index),
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).map_while(|index| self.row(index))
    }

    fn snapshot(&self) -> u64 {
        match self {
            Self::Lent(rows) => rows.snapshot_id(),
            Self::Copied(rows) => rows.snapshot,
            Self::Sent(rows) => rows.snapshot_id(),
        }
    }

    fn sequence(&self) -> Outcome<u64> {
        Ok(match self {
            Self::Lent(rows) => rows.sequence()?,
            Self::Copied(rows) => rows.sequence,
            Self::Sent(rows) => rows.sequence(),
        })
    }
}

/// The rows of a batch in Python. A store that is closed replaces rows in its map by copies.
pub(crate) struct Cell(Mutex<Kept>);

impl Cell {
    pub(crate) fn new(kept: Kept) -> Arc<Self> {
        Arc::new(Self(Mutex::new(kept)))
    }

    fn kept(&self) -> Kept {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held for Cell {
    /// Copies rows that are in the memory map. Existing buffers remain valid.
    fn release(&self) {
        if let Kept::Lent(lent) = self.kept() {
            let copied = Kept::Copied(Arc::new(CopiedRows::of(&lent)));
            let before = std::mem::replace(&mut *self.lock(), copied);
            drop(before);
        }
    }
}

/// Rows of a scan: a sequence of `(key, value)`. Each access creates new `bytes`.
///
/// Batches of a scan of a store in this process refer to the memory map of the store and keep the
/// read transaction of the scan open. They are copied when the scan is closed before its end or the
/// store is closed. Batches of other scans are copies.
#[pyclass(frozen, sequence, module = "nuthatch")]
pub(crate) struct RowBatch(Arc<Cell>);

impl RowBatch {
    pub(crate) fn new(cell: Arc<Cell>) -> Self {
        Self(cell)
    }

    /// Returns the rows and the position for an index; a negative index counts from the end.
    fn at(&self, index: isize) -> PyResult<(Kept, usize)> {
        let kept = self.0.kept();
        let at = if index < 0 { index + kept.len().cast_signed() } else { index };
        match usize::try_from(at) {
            Ok(at) if at < kept.len() => Ok((kept, at)),
            _ => Err(PyIndexError::new_err("row index out of range")),
        }
    }
}

#[pymethods]
impl RowBatch {
    fn __len__(&self) -> usize {
        self.0.lock().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyTuple>> {
        let (kept, at) = self.at(index)?;
        let (key, value) = kept.row(at).unwrap_or_default();
        PyTuple::new(py, [PyBytes::new(py, key), PyBytes::new(py, value)])
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_list(py)?.try_iter()
    }

    /// Returns all rows as tuples of a key and a value.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let kept = self.0.kept();
        let list = PyList::empty(py);
        for (key, value) in kept.rows() {
            list.append(PyTuple::new(py, [PyBytes::new(py, key), PyBytes::new(py, value)])?)?;
        }
        Ok(list)
    }

    /// Returns the keys.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        self.0.kept().rows().try_for_each(|(key, _)| list.append(PyBytes::new(py, key)))?;
        Ok(list)
    }

    /// Returns the values.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        self.0.kept().rows().try_for_each(|(_, value)| list.append(PyBytes::new(py, value)))?;
        Ok(list)
    }

    /// Returns a `memoryview` of a key, without a copy.
    ///
    /// The view protects the memory of the rows. For a scan of a store in this process it keeps the
    /// read transaction open, so release it soon.
    ///
    /// Args:
    ///     `index`: The row; a negative index counts from the end.
    fn key_view<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyMemoryView>> {
        let (kept, at) = self.at(index)?;
        Octets::view(py, Shows { kept, row: at, of_value: false })
    }

    /// Returns a `memoryview` of a value, without a copy.
    ///
    /// The view protects the memory of the rows. For a scan of a store in this process it keeps the
    /// read transaction open, so release it soon.
    ///
    /// Args:
    ///     `index`: The row; a negative index counts from the end.
    fn value_view<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyMemoryView>> {
        let (kept, at) = self.at(index)?;
        Octets::view(py, Shows { kept, row: at, of_value: true })
    }

    /// Copies the rows if they are in the memory map of the store, so that the batch keeps no
    /// transaction open.
    fn detach(&self, py: Python<'_>) {
        py.detach(|| self.0.release());
    }

    /// Returns whether the rows are in the memory map of the store.
    #[getter]
    fn lent(&self) -> bool {
        matches!(&*self.0.lock(), Kept::Lent(_))
    }

    /// Returns the number of the last transaction that the scan sees.
    #[getter]
    fn snapshot(&self, py: Python<'_>) -> u64 {
        let kept = self.0.kept();
        py.detach(|| kept.snapshot())
    }

    /// Returns the sequence number of the last change that the scan sees. A watch can continue
    /// after it.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        let kept = self.0.kept();
        py.detach(|| kept.sequence()).map_err(|failure| failure.raise(py))
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.RowBatch of {} rows>", self.__len__())
    }
}
