//! The Python class for followers.

use super::publish::trusted;
use super::work::apart;
use crate::failure::{Failure, Outcome};
use crate::runtime::{CallMode, ProcessBound};
use nuthatch_delivery::{Bandwidth, DeltaOptions, Destination, FollowOptions, Follower, Swapped};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The generation in the folder of a follower.
#[derive(Clone, Debug, Default)]
struct Current {
    path: Option<PathBuf>,
    generation: Option<u64>,
    created: Option<SystemTime>,
}

impl Current {
    fn of(follower: &Follower) -> Self {
        Self {
            path: follower.path(),
            generation: follower.generation(),
            created: follower.created(),
        }
    }
}

/// The follower, which one check at a time uses.
struct Shared {
    /// `None` after `close`.
    follower: tokio::sync::Mutex<Option<ProcessBound<Follower>>>,
    /// The generation after the last check, for readers that do not wait for the one that runs.
    current: Mutex<Current>,
}

impl Shared {
    fn current(&self) -> Current {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn check(&self) -> Outcome<Option<Swapped>> {
        let mut slot = self.follower.lock().await;
        let follower = slot.as_mut().and_then(ProcessBound::in_process_mut);
        let follower = follower.ok_or_else(|| Failure::closed("follower"))?;
        let checked = follower.check(|_| {}).await;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Current::of(follower);
        Ok(checked?)
    }
}

/// A folder that follows a destination, for `nuthatch.delivery`.
#[pyclass(frozen, name = "_Follower", module = "nuthatch._native")]
pub(super) struct FollowerHandle {
    mode: CallMode,
    shared: Arc<Shared>,
}

/// Prepares a folder that follows a destination.
#[pyfunction]
#[pyo3(signature = (mode, source, folder, trust_keys, bandwidth, previous, delta_limit, /))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the class in Python")]
pub(super) fn _open_follower(
    py: Python<'_>,
    mode: CallMode,
    source: String,
    folder: PathBuf,
    trust_keys: Vec<PathBuf>,
    bandwidth: Option<u64>,
    previous: usize,
    delta_limit: u64,
) -> PyResult<FollowerHandle> {
    if bandwidth == Some(0) {
        let message = "bandwidth: expected bytes in a second above 0, found 0";
        return Err(Failure::argument(message).raise(py));
    }
    let opened = py.detach(|| -> Outcome<Follower> {
        let trusted_keys = trusted(&trust_keys)?;
        let deltas = DeltaOptions { limit: delta_limit, ..DeltaOptions::default() };
        let bandwidth = bandwidth.map(Bandwidth::new);
        let defaults = FollowOptions::default();
        let options = FollowOptions { trusted_keys, bandwidth, previous, deltas, ..defaults };
        Ok(Follower::open(Destination::open(&source)?, &folder, options)?)
    });
    let follower = opened.map_err(|failure| failure.raise(py))?;
    let current = Mutex::new(Current::of(&follower));
    let follower = tokio::sync::Mutex::new(Some(ProcessBound::new(follower)));
    Ok(FollowerHandle { mode, shared: Arc::new(Shared { follower, current }) })
}

#[pymethods]
impl FollowerHandle {
    /// Checks the destination once. Returns the fields of the generation that was swapped in.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shared = Arc::clone(&self.shared);
        let checked = apart(async move { shared.check().await });
        let fields = checked.map(|swapped| {
            swapped.map(|done: Swapped| {
                let (path, bytes) = (done.path, done.fetched_bytes);
                (done.generation, done.created, path, bytes, done.built_files, done.delta_failures)
            })
        });
        fields.answer(py, self.mode)
    }

    /// Releases the folder, after the check that runs.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shared = Arc::clone(&self.shared);
        let closed = apart(async move {
            drop(shared.follower.lock().await.take());
            Ok(())
        });
        closed.answer(py, self.mode)
    }

    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.shared.current().path
    }

    #[getter]
    fn generation(&self) -> Option<u64> {
        self.shared.current().generation
    }

    #[getter]
    fn created(&self) -> Option<SystemTime> {
        self.shared.current().created
    }
}
