//! A cell for a value that is read often and replaced rarely.
//!
//! Each reader has its own handle with a reference to the value that it read last. A read loads one
//! counter. The counter changes only when the value is replaced, so all cores share its cache line.
//! When the counter has changed, the reader locks the cell and takes a reference to the new value.
//!
//! Readers never drop the last reference to a value, because that may take long: the cell keeps a
//! reference to each old value until [`Cell::reclaim`] finds that no reader has one.

#[cfg(loom)]
use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(loom))]
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

/// The value, and the number of its replacements.
#[derive(Debug)]
pub(crate) struct Cell<T> {
    /// Incremented after `current` changes, while `current` is locked.
    replaced: AtomicU64,
    current: Mutex<Arc<T>>,
    /// Old values to which readers may have references.
    retired: Mutex<Vec<Arc<T>>>,
}

impl<T> Cell<T> {
    /// Returns a cell with a value.
    pub(crate) fn new(value: T) -> Self {
        let (replaced, retired) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        Self { replaced, current: Mutex::new(Arc::new(value)), retired }
    }

    /// Replaces the value and returns the new one. Each reader gets it at its next read.
    pub(crate) fn replace(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        let mut current = lock(&self.current);
        let old = std::mem::replace(&mut *current, Arc::clone(&value));
        // Added before a reader can drop its reference.
        lock(&self.retired).push(old);
        self.replaced.fetch_add(1, Ordering::Release);
        value
    }

    /// Drops the old values to which no reader has a reference.
    pub(crate) fn reclaim(&self) {
        let mut retired = lock(&self.retired);
        // Readers take references to the current value only, so an unused value stays unused.
        let (unused, used) =
            retired.drain(..).partition::<Vec<_>, _>(|value| Arc::strong_count(value) == 1);
        *retired = used;
        drop(retired);
        drop(unused);
    }

    /// Returns the number of replacements.
    pub(crate) fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Acquire)
    }

    /// Returns a reference to the current value.
    pub(crate) fn current(&self) -> Arc<T> {
        Arc::clone(&lock(&self.current))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while a lock is held.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The handle of one reader.
#[derive(Debug)]
pub(crate) struct Handle<T> {
    cell: Arc<Cell<T>>,
    /// `Cell::replaced` when `value` was read.
    seen: u64,
    value: Arc<T>,
}

impl<T> Handle<T> {
    /// Returns a handle with the current value.
    pub(crate) fn new(cell: &Arc<Cell<T>>) -> Self {
        // The counter is read first: after a replacement in between, the value is read again.
        let seen = cell.replaced();
        Self { cell: Arc::clone(cell), seen, value: cell.current() }
    }

    /// Returns the current value.
    #[inline]
    pub(crate) fn get(&mut self) -> &T {
        if self.cell.replaced() != self.seen {
            self.refresh();
        }
        &self.value
    }

    /// Returns the value that was read last.
    #[inline]
    pub(crate) fn last(&self) -> &T {
        &self.value
    }

    #[cold]
    fn refresh(&mut self) {
        self.seen = self.cell.replaced();
        self.value = self.cell.current();
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self::new(&self.cell)
    }
}

/// Tests of all interleavings of a few threads, with loom.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::{Arc, Cell, Handle};
    use loom::thread;

    /// Checks all interleavings with at most three preemptions. More preemptions take hours.
    fn model(check: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(check);
    }

    #[test]
    fn loom_readers_get_whole_values_in_order() {
        model(|| {
            let cell = Arc::new(Cell::new((0_u32, 0_u32)));
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let mut handle = Handle::new(&cell);
                    thread::spawn(move || {
                        let mut last = 0;
                        for _ in 0..2 {
                            let (a, b) = *handle.get();
                            assert!(a == b && a >= last, "{a} {b} after {last}");
                            last = a;
                        }
                    })
                })
                .collect();
            cell.replace((1, 1));
            cell.replace((2, 2));
            for reader in readers {
                reader.join().expect("no panic");
            }
            assert_eq!(*Handle::new(&cell).get(), (2, 2));
        });
    }

    #[test]
    fn loom_a_reader_that_knows_of_a_replacement_sees_it() {
        model(|| {
            let cell = Arc::new(Cell::new(0_u32));
            let mut handle = Handle::new(&cell);
            let writer = {
                let cell = Arc::clone(&cell);
                thread::spawn(move || drop(cell.replace(1)))
            };
            writer.join().expect("no panic");
            assert_eq!(*handle.get(), 1);
        });
    }

    #[test]
    fn loom_reclaiming_drops_the_old_value_and_readers_never_do() {
        model(|| {
            let old = Arc::new(());
            let cell = Arc::new(Cell::new(Arc::clone(&old)));
            let mut handle = Handle::new(&cell);
            let reader = thread::spawn(move || {
                handle.get();
                handle
            });
            cell.replace(Arc::new(()));
            cell.reclaim();
            let mut handle = reader.join().expect("no panic");
            handle.get();
            cell.reclaim();
            assert_eq!(Arc::strong_count(&old), 1, "only the test has the old value");
        });
    }
}
