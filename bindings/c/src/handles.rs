//! Handles: maps the numbers that C uses to open objects. A number is never reused, so a closed
//! handle is always recognized.

use crate::error::{Failure, NUTHATCH_ERROR_HANDLE, Result};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

type Object = Arc<dyn Any + Send + Sync>;

static NEXT: AtomicU64 = AtomicU64::new(1);
static OBJECTS: LazyLock<RwLock<HashMap<u64, Object>>> = LazyLock::new(RwLock::default);

/// An object that can have a handle.
pub(crate) trait HandleObject: Any + Send + Sync {
    /// Name of the kind of object in messages, with its article.
    const KIND: &'static str;
}

/// Returns a new handle of an object.
pub(crate) fn create<T: HandleObject>(object: T) -> u64 {
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    objects.insert(handle, Arc::new(object));
    handle
}

/// Returns the object of a handle. The object lives while this reference is used, even if another
/// thread closes the handle meanwhile.
pub(crate) fn find<T: HandleObject>(handle: u64) -> Result<Arc<T>> {
    let objects = OBJECTS.read().unwrap_or_else(PoisonError::into_inner);
    match objects.get(&handle) {
        Some(object) => Arc::clone(object).downcast().map_err(|_| wrong::<T>(handle)),
        None => Err(missing::<T>(handle)),
    }
}

/// Closes a handle and returns its object.
pub(crate) fn close<T: HandleObject>(handle: u64) -> Result<Arc<T>> {
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    match objects.remove(&handle) {
        Some(object) => object.downcast().map_err(|object| {
            objects.insert(handle, object);
            wrong::<T>(handle)
        }),
        None => Err(missing::<T>(handle)),
    }
}

/// Closes the handles of all objects of a kind that a predicate selects.
pub(crate) fn close_all<T: HandleObject>(is_selected: impl Fn(&T) -> bool) {
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    let selected = |object: &Object| object.downcast_ref().is_some_and(&is_selected);
    let closed: Vec<_> = objects.extract_if(|_, object| selected(object)).collect();
    // The objects are dropped without the lock.
    drop(objects);
    drop(closed);
}

#[cold]
fn missing<T: HandleObject>(handle: u64) -> Failure {
    if handle > 0 && handle < NEXT.load(Ordering::Relaxed) {
        let text = format!("expected the handle of {}, found {handle}, which was closed", T::KIND);
        return Failure::closed(&text);
    }
    let text = format!("expected the handle of {}, found {handle}, which is none", T::KIND);
    Failure::Library(NUTHATCH_ERROR_HANDLE, text)
}

#[cold]
fn wrong<T: HandleObject>(handle: u64) -> Failure {
    let text = format!("expected the handle of {}, found {handle}, of something else", T::KIND);
    Failure::Library(NUTHATCH_ERROR_HANDLE, text)
}
