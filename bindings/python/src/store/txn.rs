//! State and methods that read transactions and write transactions in Python share.

use super::bounds::{Wanted, range_of};
use super::data::table_of;
use super::engine::{Engine, caller};
use super::reading::Reading;
use super::scan::{AnyScan, Course, Source};
use super::tables::TableRef;
use super::writes::Writes;
use super::writing::Writing;
use crate::failure::{Failure, Outcome};
use crate::octets::{Octets, Value};
use crate::own::check_process;
use crate::runtime::generation;
use crate::work::{Face, Work};
use nuthatch_store::Durability;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Writes are buffered up to this size in bytes before they are sent to the thread of the
/// transaction.
const PARCEL_BYTES: usize = 256 << 10;

/// The state of a transaction in Python.
pub(crate) struct State {
    pub(crate) engine: Engine,
    /// The default table.
    pub(crate) table: TableRef,
    /// Durability of the commit; `None` for a read transaction.
    durability: Option<Durability>,
    /// The process that created the transaction.
    generation: u32,
    reading: Mutex<Progress>,
    /// Writes that were not sent yet.
    pending: Mutex<Writes>,
}

enum Progress {
    Before,
    Open(Reading),
    Ended,
}

impl State {
    /// Creates a transaction that has not begun: a write transaction with a durability, a read
    /// transaction without one.
    pub(crate) fn new(
        engine: Engine,
        table: TableRef,
        durability: Option<Durability>,
    ) -> Arc<Self> {
        let (reading, pending) = (Mutex::new(Progress::Before), Mutex::default());
        let generation = generation();
        Arc::new(Self { engine, table, durability, generation, reading, pending })
    }

    /// Returns work that begins the transaction.
    pub(crate) fn begin(self: &Arc<Self>, py: Python<'_>, face: Face) -> PyResult<Work<()>> {
        let state = Arc::clone(self);
        let begun = match (&self.engine, self.durability) {
            (Engine::Remote(remote), _) => {
                let (remote, table) = (Arc::clone(remote), self.table.clone());
                Work::awaited(async move { Reading::remote(remote, &table).await })
            }
            (Engine::Local(local), None) => {
                let (local, table) = (Arc::clone(local), self.table.clone());
                Work::blocking(move || Reading::snapshot(&local, &table))
            }
            (Engine::Local(local), Some(durability)) => {
                self.engine.check_not_writing(py, face)?;
                let (local, table, holder) =
                    (Arc::clone(local), self.table.clone(), caller(py, face)?);
                Work::awaited(async move {
                    let writing = Writing::begin(local, table, durability, holder).await?;
                    Ok(Reading::Writing(writing))
                })
            }
        };
        Ok(begun.map(move |reading| *state.lock() = Progress::Open(reading)))
    }

    /// Returns the open transaction; fails if it has not begun or has ended.
    pub(crate) fn reading(&self) -> Outcome<Reading> {
        check_process(self.generation, "transaction")?;
        match &*self.lock() {
            Progress::Open(reading) => Ok(reading.clone()),
            Progress::Ended => Err(Failure::closed("transaction")),
            Progress::Before => {
                let message = "the transaction has not begun: use `async with`, or await it";
                Err(Failure::argument(message))
            }
        }
    }

    /// Ends the transaction without a commit, unless it was committed.
    pub(crate) fn end(&self) {
        if check_process(self.generation, "transaction").is_err() {
            return;
        }
        let before = std::mem::replace(&mut *self.lock(), Progress::Ended);
        if let Progress::Open(reading) = before {
            reading.end();
        }
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, Writes> {
        // A panic cannot leave the writes invalid: each statement completes a change.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds writes to the buffer. Sends the buffer to the transaction if it is full.
    pub(crate) fn write(&self, add: impl FnOnce(&mut Writes)) -> Work<()> {
        if let Err(failure) = check_process(self.generation, "transaction") {
            return Work::Done(Err(failure));
        }
        let mut pending = self.pending();
        if !matches!(&*self.lock(), Progress::Open(_)) {
            return Work::Done(self.reading().map(drop));
        }
        add(&mut pending);
        if pending.bytes() < PARCEL_BYTES {
            return Work::Done(Ok(()));
        }
        match self.reading() {
            Ok(Reading::Writing(writing)) => writing.write(std::mem::take(&mut *pending)),
            // A server receives all writes with the commit.
            _ => Work::Done(Ok(())),
        }
    }

    /// Returns work that uses the transaction after all earlier writes.
    pub(crate) fn after_writes<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Reading) -> Work<T>,
    ) -> Work<T> {
        let reading = match self.reading() {
            Ok(reading) => reading,
            Err(failure) => return Work::Done(Err(failure)),
        };
        let work = act(&reading);
        let Reading::Writing(writing) = reading else { return work };
        let pending = std::mem::take(&mut *self.pending());
        if pending.len() == 0 {
            return work;
        }
        Work::awaited(async move {
            writing.write(pending).outcome().await?;
            work.outcome().await
        })
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.end();
    }
}

/// Lookups and scans of a transaction.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyTxn {
    pub(crate) state: Arc<State>,
    pub(crate) face: Face,
}

impl AnyTxn {
    /// Returns the named table, or the default one.
    fn table(&self, named: Option<&Bound<'_, PyAny>>) -> PyResult<TableRef> {
        Ok(table_of(named)?.unwrap_or_else(|| self.state.table.clone()))
    }

    /// Looks up a key on this thread in a read transaction of this process, if the call blocks;
    /// otherwise returns `None`.
    fn get_here<'py>(
        &self,
        py: Python<'py>,
        table: &TableRef,
        key: &[u8],
    ) -> Option<PyResult<Option<Bound<'py, PyBytes>>>> {
        let Face::Sync = self.face else { return None };
        let Ok(Reading::Snapshot(snapshot)) = self.state.reading() else { return None };
        let get = || {
            snapshot.with(|txn| {
                let found = nuthatch_store::Read::get(txn, &table.opened()?, key)?;
                Ok(found.map(<[u8]>::to_vec))
            })
        };
        let found = py.detach(get).map_err(|failure| failure.raise(py));
        Some(found.map(|found| found.map(|value| PyBytes::new(py, &value))))
    }
}

#[pymethods]
impl AnyTxn {
    /// Returns the value of a key; `None` if the key is missing.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (key, *, table=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Octets<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = self.table(table)?;
        if let Some(found) = self.get_here(py, &table, &key) {
            found?.into_bound_py_any(py)
        } else {
            let key = key.to_vec();
            self.state.after_writes(|txn| txn.get(&table, key)).answer(py, self.face)
        }
    }

    /// Returns the values of several keys.
    ///
    /// Args:
    ///     `keys`: The keys.
    ///     `table`: The table; by default that of the transaction.
    ///
    /// Returns:
    ///     A list with a value for each key, in the same order; `None` for a missing key.
    #[pyo3(signature = (keys, *, table=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, keys) = (self.table(table)?, keys_of(keys)?);
        let work: Work<Vec<Option<Value>>> =
            self.state.after_writes(|txn| txn.get_many(&table, keys));
        work.answer(py, self.face)
    }

    /// Returns the value of a key with its version and time of expiry; `None` if the key is
    /// missing.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (key, *, table=None))]
    fn entry<'py>(
        &self,
        py: Python<'py>,
        key: Octets<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, key) = (self.table(table)?, key.to_vec());
        self.state.after_writes(|txn| txn.entry(&table, key)).answer(py, self.face)
    }

    /// Returns the number of keys in a range.
    ///
    /// Args:
    ///     `table`: The table; by default that of the transaction.
    ///     `bounds`: The range, as `nuthatch.options.Bounds`; without bounds, all keys.
    #[pyo3(signature = (*, table=None, **bounds))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        table: Option<&Bound<'py, PyAny>>,
        bounds: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, range) = (self.table(table)?, range_of(py, "count", bounds)?);
        self.state.after_writes(|txn| txn.count(&table, range)).answer(py, self.face)
    }

    /// Returns an iterator over the rows of a range, in batches, as the transaction sees them.
    ///
    /// Args:
    ///     `table`: The table; by default that of the transaction.
    ///     `options`: Bounds, order, limit and batch size, as `nuthatch.options.ScanOptions`.
    #[pyo3(signature = (*, table=None, **options))]
    fn scan(
        &self,
        py: Python<'_>,
        table: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let table = self.table(table)?;
        let wanted = Box::new(Wanted::of(py, "scan", options)?);
        self.state.reading().map_err(|failure| failure.raise(py))?;
        let source = Source::Within(Arc::clone(&self.state), table, wanted);
        let course = Course::new(None, source);
        AnyScan::make(py, course, self.face)
    }

    /// Returns the sequence number of the last change that the transaction sees. A watch can
    /// continue after it.
    fn sequence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.state.after_writes(Reading::sequence).answer(py, self.face)
    }
}

/// Converts the keys of an iterable.
pub(crate) fn keys_of(keys: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u8>>> {
    keys.try_iter()?.map(|key| Ok(key?.extract::<Octets<'_>>()?.to_vec())).collect()
}
