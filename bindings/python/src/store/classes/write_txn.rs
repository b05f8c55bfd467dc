//! Python classes for write transactions.

use super::tables::{AnyData, table_of};
use super::txn_methods::AnyTxn;
use crate::convert::{BytesArg, expiry};
use crate::failure::Failure;
use crate::runtime::{CallMode, Work, begin_object};
use crate::store::engine::{OwnedCondition, Writes, ensure_tables, range_of};
use crate::store::results::Written;
use crate::store::transactions::{OpenTxn, TxnState};
use nuthatch_store::Durability;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// Methods that all write transactions have, blocking and asynchronous.
#[pyclass(frozen, subclass, extends = AnyTxn, module = "nuthatch._native")]
pub(crate) struct AnyTransaction;

/// A write transaction. A store in this process has one at a time. A server receives its writes
/// with the commit. Leaving `with` commits it; an exception aborts it.
///
/// Writes run in the background. A later call or the commit reports a failed write.
#[pyclass(frozen, extends = AnyTransaction, module = "nuthatch")]
pub(crate) struct Transaction;

/// A write transaction. A store in this process has one at a time. A server receives its writes
/// with the commit. Leaving `async with` commits it; an exception aborts it.
///
/// Writes run in the background. A later call or the commit reports a failed write.
#[pyclass(frozen, extends = AnyTransaction, module = "nuthatch")]
pub(crate) struct AsyncTransaction;

/// Begins a write transaction, or creates an asynchronous one that has not begun.
pub(crate) fn make(py: Python<'_>, data: &AnyData, durability: Durability) -> PyResult<Py<PyAny>> {
    let state = TxnState::new(data.engine.clone(), data.table.clone(), Some(durability));
    let (begun, mode) = (Arc::clone(&state), data.mode);
    let base = PyClassInitializer::from(AnyTxn { state, mode }).add_subclass(AnyTransaction);
    match mode {
        CallMode::Sync => {
            begun.begin(py, mode)?.wait(py)?;
            Ok(Py::new(py, base.add_subclass(Transaction))?.into_any())
        }
        CallMode::Async => Ok(Py::new(py, base.add_subclass(AsyncTransaction))?.into_any()),
    }
}

/// Commits the transaction.
fn commit(state: &Arc<TxnState>) -> Work<Written> {
    let txn = match state.open_txn() {
        Ok(txn) => txn,
        Err(failure) => return Work::Done(Err(failure)),
    };
    let (pending, table) = (std::mem::take(&mut *state.pending()), state.table.clone());
    let state = Arc::clone(state);
    Work::awaited(async move {
        let written = match txn {
            OpenTxn::LocalWrite(local) => {
                if pending.len() > 0 {
                    local.write(pending).outcome().await?;
                }
                local.commit().outcome().await
            }
            OpenTxn::Remote(remote, remote_txn) => {
                ensure_tables(&remote.client()?, &pending, &table).await?;
                let batch = pending.remote_batch(&table)?;
                let committed = remote_txn.take().await?.commit(batch).await;
                committed.map(Written::from).map_err(Failure::from)
            }
            OpenTxn::LocalRead(_) => Err(Failure::lost()),
        };
        state.end();
        written
    })
}

impl AnyTransaction {
    /// Adds a write to the named table, or to the default one.
    fn write<'py>(
        slf: &Bound<'py, Self>,
        named: Option<&Bound<'py, PyAny>>,
        add: impl FnOnce(&mut Writes, Option<crate::store::engine::TableRef>),
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, base) = (table_of(named)?, slf.as_super().get());
        base.state.write(|writes| add(writes, table)).answer(slf.py(), base.mode)
    }

    /// Writes the rows of an iterable. A blocking call sends them while it iterates. An
    /// asynchronous call sends them after the last one, so that the event loop does not block.
    fn write_rows<'py>(
        slf: &Bound<'py, Self>,
        named: Option<&Bound<'py, PyAny>>,
        rows: &Bound<'py, PyAny>,
        add: fn(&mut Writes, Option<crate::store::engine::TableRef>, &[u8], &[u8]),
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, table, base) = (slf.py(), table_of(named)?, slf.as_super().get());
        let mut writes = Vec::new();
        for row in rows.try_iter()? {
            let (key, value) = row?.extract::<(BytesArg<'_>, BytesArg<'_>)>()?;
            let work = base.state.write(|writes| add(writes, table.clone(), &key, &value));
            match (work, base.mode) {
                (Work::Done(Ok(())), _) => {}
                (work, CallMode::Sync) => work.wait(py)?,
                (work, CallMode::Async) => writes.push(work),
            }
        }
        let all = Work::awaited(async move {
            for write in writes {
                write.outcome().await?;
            }
            Ok(())
        });
        all.answer(py, base.mode)
    }
}

#[pymethods]
impl AnyTransaction {
    /// Writes a value. Replaces the value that the key has.
    ///
    /// Args:
    ///     `key`: The key, 1 to 511 bytes.
    ///     `value`: The value.
    ///     `ttl`: Seconds from now until the row expires; stamped tables only.
    ///     `expires_at`: Time of expiry in seconds since 1970, instead of `ttl`.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (key, value, *, ttl=None, expires_at=None, table=None))]
    fn put<'py>(
        slf: &Bound<'py, Self>,
        key: BytesArg<'py>,
        value: BytesArg<'py>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let expires_at_ms = expiry(slf.py(), ttl, expires_at)?;
        Self::write(slf, table, |writes, table| writes.put(table, &key, &value, expires_at_ms))
    }

    /// Writes many rows.
    ///
    /// Args:
    ///     `rows`: An iterable of `(key, value)`.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (rows, *, table=None))]
    fn put_many<'py>(
        slf: &Bound<'py, Self>,
        rows: &Bound<'py, PyAny>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::write_rows(slf, table, rows, |writes, table, key, value| {
            writes.put(table, key, value, None);
        })
    }

    /// Writes a value under a key that is greater than all keys of the table. Appended rows fill
    /// pages completely.
    ///
    /// Args:
    ///     `key`: The key, 1 to 511 bytes.
    ///     `value`: The value.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (key, value, *, table=None))]
    fn append<'py>(
        slf: &Bound<'py, Self>,
        key: BytesArg<'py>,
        value: BytesArg<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::write(slf, table, |writes, table| writes.append(table, &key, &value))
    }

    /// Appends many rows.
    ///
    /// Args:
    ///     `rows`: An iterable of `(key, value)` in key order. Their keys are greater than all keys
    ///         of the table.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (rows, *, table=None))]
    fn append_many<'py>(
        slf: &Bound<'py, Self>,
        rows: &Bound<'py, PyAny>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::write_rows(slf, table, rows, Writes::append)
    }

    /// Deletes a key. Deleting a missing key has no effect.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (key, *, table=None))]
    fn delete<'py>(
        slf: &Bound<'py, Self>,
        key: BytesArg<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::write(slf, table, |writes, table| writes.delete(table, &key))
    }

    /// Deletes all keys in a range.
    ///
    /// Args:
    ///     `table`: The table; by default that of the transaction.
    ///     `bounds`: The range, as `nuthatch.options.Bounds`; without bounds, all keys.
    #[pyo3(signature = (*, table=None, **bounds))]
    fn delete_range<'py>(
        slf: &Bound<'py, Self>,
        table: Option<&Bound<'py, PyAny>>,
        bounds: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let range = range_of(slf.py(), "delete_range", bounds)?;
        Self::write(slf, table, |writes, table| writes.delete_range(table, range))
    }

    /// Adds a condition on a key. If it is not met, the transaction cannot be committed.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the transaction.
    ///     `condition`: Exactly one of `absent=True`, `present=True`, `equals` and `version`.
    #[pyo3(signature = (key, *, table=None, **condition))]
    fn check<'py>(
        slf: &Bound<'py, Self>,
        key: BytesArg<'py>,
        table: Option<&Bound<'py, PyAny>>,
        condition: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let condition = OwnedCondition::of(slf.py(), "check", condition)?;
        Self::write(slf, table, |writes, table| writes.check(table, &key, condition))
    }

    /// Commits the transaction and ends it.
    ///
    /// Returns:
    ///     A `Written` with the transaction and the sequence number.
    ///
    /// Raises:
    ///     `Error`: A write or the commit failed; nothing was written.
    fn commit<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        commit(&base.state).answer(slf.py(), base.mode)
    }

    /// Ends the transaction without a commit.
    fn abort<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, base) = (slf.py(), slf.as_super().get());
        py.detach(|| base.state.end());
        Work::Done(Ok(())).answer(py, base.mode)
    }
}

/// Ends a transaction when its `with` is left: commits it, or aborts it after an exception. It may
/// have ended before.
fn leave(state: &Arc<TxnState>, with_exception: bool) -> Work<bool> {
    if with_exception || state.open_txn().is_err() {
        state.end();
        return Work::Done(Ok(false));
    }
    commit(state).map(|_| false)
}

#[pymethods]
impl Transaction {
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, *_exception))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyAny>>,
        _exception: &Bound<'_, PyTuple>,
    ) -> PyResult<bool> {
        let state = &slf.as_super().as_super().get().state;
        leave(state, kind.is_some()).wait(slf.py())
    }
}

#[pymethods]
impl AsyncTransaction {
    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::__aenter__(slf)?.call_method0("__await__")
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, base) = (slf.py(), slf.as_super().as_super().get());
        let (begin, state) = (base.state.begin(py, base.mode)?, Arc::clone(&base.state));
        begin_object(py, begin, slf.clone().into_any().unbind(), move || state.end())
    }

    #[pyo3(signature = (kind, *_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        kind: Option<&Bound<'py, PyAny>>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().as_super().get();
        leave(&base.state, kind.is_some()).answer(slf.py(), base.mode)
    }
}
