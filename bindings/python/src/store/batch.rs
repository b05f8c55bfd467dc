//! Batches in Python: writes that happen together or not at all.

use super::bounds::range_of;
use super::condition::Wanted;
use super::data::table_of;
use super::writes::Writes;
use crate::octets::Octets;
use crate::times::expiry;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Writes and conditions that happen together or not at all, in order. Each method answers the
/// batch itself. Tables that are not named are the default ones of whoever writes the batch.
#[pyclass(frozen, module = "nuthatch")]
#[derive(Default)]
pub(crate) struct Batch(Mutex<Writes>);

impl Batch {
    /// What it has so far.
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

    /// Writes a value under a key.
    #[pyo3(signature = (key, value, *, ttl=None, expires_at=None, table=None))]
    fn put<'py>(
        slf: Bound<'py, Self>,
        key: Octets<'py>,
        value: Octets<'py>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (expires_at_ms, table) = (expiry(slf.py(), ttl, expires_at)?, table_of(table)?);
        slf.get().lock().put(table, &key, &value, expires_at_ms);
        Ok(slf)
    }

    /// Deletes a key, if it is there.
    #[pyo3(signature = (key, *, table=None))]
    fn delete<'py>(
        slf: Bound<'py, Self>,
        key: Octets<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let table = table_of(table)?;
        slf.get().lock().delete(table, &key);
        Ok(slf)
    }

    /// Deletes all keys of a range.
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

    /// Has nothing of the batch happen unless a condition holds of a key: exactly one of
    /// `absent=True`, `present=True`, `equals` and `version`. Writes before it in the batch count.
    #[pyo3(signature = (key, *, table=None, **condition))]
    fn check<'py>(
        slf: Bound<'py, Self>,
        key: Octets<'py>,
        table: Option<&Bound<'py, PyAny>>,
        condition: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (table, wanted) = (table_of(table)?, Wanted::of(slf.py(), "check", condition)?);
        slf.get().lock().check(table, &key, wanted);
        Ok(slf)
    }

    fn __len__(&self) -> usize {
        self.lock().len()
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.Batch of {} writes>", self.__len__())
    }
}
