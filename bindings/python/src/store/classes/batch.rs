//! Python class for batches: writes that are committed together or not at all.

use super::tables::table_of;
use crate::convert::{BytesArg, expiry};
use crate::store::engine::{OwnedCondition, Writes, range_of};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Writes and conditions that are committed together or not at all, in order. Each method returns
/// the batch itself. A write without a table uses the default table of the object that commits the
/// batch.
#[pyclass(frozen, module = "nuthatch")]
#[derive(Default)]
pub(crate) struct Batch(Mutex<Writes>);

impl Batch {
    /// Returns a copy of the writes and conditions so far.
    pub(crate) fn writes(&self) -> Writes {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Writes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Batch {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds a put.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `value`: The value.
    ///     `ttl`: Seconds from now until the row expires; stamped tables only.
    ///     `expires_at`: Time of expiry in seconds since 1970, instead of `ttl`.
    ///     `table`: The table; by default that of the object that commits the batch.
    #[pyo3(signature = (key, value, *, ttl=None, expires_at=None, table=None))]
    fn put<'py>(
        slf: Bound<'py, Self>,
        key: BytesArg<'py>,
        value: BytesArg<'py>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (expires_at_ms, table) = (expiry(slf.py(), ttl, expires_at)?, table_of(table)?);
        slf.get().lock().put(table, &key, &value, expires_at_ms);
        Ok(slf)
    }

    /// Adds a delete. Deleting a missing key has no effect.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the object that commits the batch.
    #[pyo3(signature = (key, *, table=None))]
    fn delete<'py>(
        slf: Bound<'py, Self>,
        key: BytesArg<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let table = table_of(table)?;
        slf.get().lock().delete(table, &key);
        Ok(slf)
    }

    /// Adds a delete of all keys in a range.
    ///
    /// Args:
    ///     `table`: The table; by default that of the object that commits the batch.
    ///     `bounds`: The range, as `nuthatch.options.Bounds`; without bounds, all keys.
    #[pyo3(signature = (*, table=None, **bounds))]
    fn delete_range<'py>(
        slf: Bound<'py, Self>,
        table: Option<&Bound<'py, PyAny>>,
        bounds: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (table, range) = (table_of(table)?, range_of(slf.py(), "delete_range", bounds)?);
        slf.get().lock().delete_range(table, range);
        Ok(slf)
    }

    /// Adds a condition on a key. If it is not met, the whole batch is cancelled. The condition
    /// sees the writes before it in the batch.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the object that commits the batch.
    ///     `condition`: Exactly one of `absent=True`, `present=True`, `equals` and `version`.
    #[pyo3(signature = (key, *, table=None, **condition))]
    fn check<'py>(
        slf: Bound<'py, Self>,
        key: BytesArg<'py>,
        table: Option<&Bound<'py, PyAny>>,
        condition: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (table, condition) =
            (table_of(table)?, OwnedCondition::of(slf.py(), "check", condition)?);
        slf.get().lock().check(table, &key, condition);
        Ok(slf)
    }

    fn __len__(&self) -> usize {
        self.lock().len()
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.Batch of {} writes>", self.__len__())
    }
}
