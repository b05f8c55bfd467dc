//! Handles: maps the numbers that C uses to open objects. A number is never reused, so a closed
//! handle is always recognized.

use crate::error::{Failure, HANDLE, Result};
use crate::store::{OpenScan, OpenSnapshot, OpenStore, OpenTable, OpenWatch, OpenWriter};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// The object of a handle.
#[derive(Clone)]
pub(crate) enum Object {
    Store(Arc<OpenStore>),
    Table(Arc<OpenTable>),
    Snapshot(Arc<OpenSnapshot>),
    Scan(Arc<OpenScan>),
    Writer(Arc<OpenWriter>),
    Watch(Arc<OpenWatch>),
}

static NEXT: AtomicU64 = AtomicU64::new(1);
static OBJECTS: LazyLock<RwLock<HashMap<u64, Object>>> = LazyLock::new(RwLock::default);

/// An object that can have a handle.
pub(crate) trait Held: Sized {
    const WHAT: &'static str;
    fn of(object: &Object) -> Option<&Arc<Self>>;
    fn wrap(this: Arc<Self>) -> Object;
}

macro_rules! held {
    ($($type:ident $variant:ident $what:literal),*) => {
        $(impl Held for $type {
            const WHAT: &'static str = $what;
            fn of(object: &Object) -> Option<&Arc<Self>> {
                match object {
                    Object::$variant(this) => Some(this),
                    _ => None,
                }
            }
            fn wrap(this: Arc<Self>) -> Object {
                Object::$variant(this)
            }
        })*
    };
}

held!(
    OpenStore Store "a store",
    OpenTable Table "a table",
    OpenSnapshot Snapshot "a snapshot",
    OpenScan Scan "a scan",
    OpenWriter Writer "a writer",
    OpenWatch Watch "a watch"
);

/// Returns a new handle of an object.
pub(crate) fn hold<T: Held>(held: T) -> u64 {
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    objects.insert(handle, T::wrap(Arc::new(held)));
    handle
}

/// Returns the object of a handle. The object lives while this reference is used, even if another
/// thread closes the handle meanwhile.
pub(crate) fn find<T: Held>(handle: u64) -> Result<Arc<T>> {
    let objects = OBJECTS.read().unwrap_or_else(PoisonError::into_inner);
    match objects.get(&handle) {
        Some(object) => T::of(object).cloned().ok_or_else(|| wrong::<T>(handle)),
        None => Err(missing::<T>(handle)),
    }
}

/// Closes a handle and returns its object.
pub(crate) fn close<T: Held>(handle: u64) -> Result<Arc<T>> {
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    match objects.remove(&handle) {
        Some(object) => {
            let found = T::of(&object).cloned();
            if found.is_none() {
                objects.insert(handle, object);
            }
            // The object is dropped without the lock.
            drop(objects);
            found.ok_or_else(|| wrong::<T>(handle))
        }
        None => Err(missing::<T>(handle)),
    }
}

/// Closes the handles of a store's tables.
pub(crate) fn close_tables(store: u64) {
    let mut objects = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    let of_store = |object: &Object| OpenTable::of(object).is_some_and(|t| t.store_handle == store);
    let closed: Vec<_> = objects.extract_if(|_, object| of_store(object)).collect();
    drop(objects);
    drop(closed);
}

#[cold]
fn missing<T: Held>(handle: u64) -> Failure {
    if handle > 0 && handle < NEXT.load(Ordering::Relaxed) {
        return Failure::closed();
    }
    let text = format!("expected the handle of {}, found {handle}, which is none", T::WHAT);
    Failure::Own(HANDLE, text)
}

#[cold]
fn wrong<T: Held>(handle: u64) -> Failure {
    let text = format!("expected the handle of {}, found {handle}, of something else", T::WHAT);
    Failure::Own(HANDLE, text)
}
