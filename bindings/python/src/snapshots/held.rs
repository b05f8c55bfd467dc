//! Open snapshots that several Python objects keep open: the `Snapshot`, its iterators, and arrays
//! that refer to the file.
//!
//! This file contains unsafe code: a lookup reads the snapshot through a pointer, without a lock
//! and without counting a reference.

use super::failure::{closed, raised};
use super::identity::Identity;
use nuthatch_snapshot::{Snapshot, WatchReader};
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether threads run Python code one at a time, because the interpreter has a lock.
static HAS_LOCK: AtomicBool = AtomicBool::new(false);

/// Sets whether the interpreter has a lock. Called once, before any other function of this file.
pub(super) fn detect_threading(py: Python<'_>) -> PyResult<()> {
    let name = ("Py_GIL_DISABLED",);
    let disabled = py.import("sysconfig")?.call_method1("get_config_var", name)?.is_truthy()?;
    HAS_LOCK.store(!disabled, Ordering::Relaxed);
    Ok(())
}

/// An open snapshot.
pub(super) struct Held {
    /// The snapshot of `_owner`, which neither moves nor changes.
    snapshot: NonNull<Snapshot>,
    _owner: Owner,
    pub(super) path: PathBuf,
    /// The file, for pickling; `None` for the snapshot of a watch.
    pub(super) identity: Option<Identity>,
}

/// What keeps the snapshot open. Never used: a reader of a watch must stay at its generation.
enum Owner {
    Opened { _snapshot: Arc<Snapshot> },
    Watched { _reader: WatchReader },
}

// SAFETY: the pointer is to a snapshot that `_owner` keeps, and snapshots can be shared and sent.
unsafe impl Send for Held {}
// SAFETY: as above; `_owner` is never used, so a reader of a watch is not shared.
unsafe impl Sync for Held {}

impl Held {
    /// Returns a snapshot that was opened.
    pub(super) fn opened(snapshot: Snapshot, path: PathBuf, identity: Identity) -> Arc<Self> {
        let snapshot = Arc::new(snapshot);
        let address = NonNull::from(&*snapshot);
        let owner = Owner::Opened { _snapshot: snapshot };
        Arc::new(Self { snapshot: address, _owner: owner, path, identity: Some(identity) })
    }

    /// Returns the newest generation of a watch.
    pub(super) fn watched(mut reader: WatchReader) -> Arc<Self> {
        let snapshot = reader.current();
        let (address, path) = (NonNull::from(snapshot), snapshot.path().to_owned());
        let owner = Owner::Watched { _reader: reader };
        Arc::new(Self { snapshot: address, _owner: owner, path, identity: None })
    }

    /// Returns the snapshot.
    #[inline(always)]
    pub(super) fn get(&self) -> &Snapshot {
        // SAFETY: `_owner` has an `Arc` of the snapshot, which lives as long as `self`.
        unsafe { self.snapshot.as_ref() }
    }

    /// Returns the snapshot with any lifetime.
    ///
    /// # Safety
    ///
    /// The caller keeps `self` as long as it uses the result.
    pub(super) unsafe fn get_unbounded<'a>(&self) -> &'a Snapshot {
        // SAFETY: `self` keeps the snapshot, and the caller keeps `self`.
        unsafe { self.snapshot.as_ref() }
    }

    /// Fails if a page of a file could not be read, since reads of it return zeros. Costs one load
    /// from memory unless a map of the process was lost.
    #[inline(always)]
    pub(super) fn check_readable(&self, py: Python<'_>) -> PyResult<()> {
        if nuthatch_sigbus::is_any_lost() {
            raised(py, self.get().check_readable())
        } else {
            Ok(())
        }
    }
}

/// A snapshot that can be closed while other threads use it.
///
/// A lookup borrows the snapshot, without counting a reference, and runs no Python code while it
/// does. Closing takes the pointer away. With a lock of the interpreter, no lookup runs at that
/// time, so the reference is dropped. Without one, it is dropped with the Python object, which a
/// lookup keeps alive.
pub(super) struct Closable {
    /// From `Arc::into_raw`; null after closing.
    open: AtomicPtr<Held>,
    closed: OnceLock<Arc<Held>>,
}

impl Closable {
    pub(super) fn new(held: Arc<Held>) -> Self {
        let open = AtomicPtr::new(Arc::into_raw(held).cast_mut());
        Self { open, closed: OnceLock::new() }
    }

    /// Returns the snapshot for work that runs no Python code and does not detach from the
    /// interpreter; fails if it is closed.
    #[inline(always)]
    pub(super) fn get(&self, py: Python<'_>) -> PyResult<&Held> {
        match self.peek(py) {
            Some(held) => Ok(held),
            None => Err(closed(py, "snapshot")),
        }
    }

    /// Returns the snapshot as [`get`](Self::get) does; `None` if it is closed.
    #[inline(always)]
    pub(super) fn peek(&self, _attached: Python<'_>) -> Option<&Held> {
        // SAFETY: the pointer is null, or from `Arc::into_raw`. The reference that it stands for
        // is dropped when no lookup runs, as the description of the type says.
        unsafe { self.open.load(Ordering::Acquire).as_ref() }
    }

    /// Returns a counted reference to the snapshot, for any work; fails if it is closed.
    pub(super) fn share(&self, py: Python<'_>) -> PyResult<Arc<Held>> {
        let held: *const Held = self.get(py)?;
        // SAFETY: the pointer is from `Arc::into_raw`. Its reference is not dropped here.
        let held = ManuallyDrop::new(unsafe { Arc::from_raw(held) });
        Ok(Arc::clone(&held))
    }

    /// Closes the snapshot. Iterators and arrays keep the file mapped.
    pub(super) fn close(&self, py: Python<'_>) {
        let Some(held) = self.take() else { return };
        if HAS_LOCK.load(Ordering::Relaxed) {
            py.detach(|| drop(held));
        } else {
            // Only the first call gets here.
            let _ = self.closed.set(held);
        }
    }

    fn take(&self) -> Option<Arc<Held>> {
        let held = NonNull::new(self.open.swap(std::ptr::null_mut(), Ordering::AcqRel))?;
        // SAFETY: the pointer is from `Arc::into_raw`, and only one call takes it.
        Some(unsafe { Arc::from_raw(held.as_ptr()) })
    }
}

impl Drop for Closable {
    fn drop(&mut self) {
        drop(self.take());
    }
}
