//! A value that is replaced now and then and read all the time.
//!
//! Each reader has a handle of its own that keeps the value it last saw. A read loads one counter,
//! which nobody writes between replacements, so its cache line is shared by all cores; only when it
//! has moved does the reader take the lock and a reference to the new value.
//!
//! Readers never drop a value for good, since that may take long: the cell keeps a reference to
//! each old value until [`Cell::reclaim`] finds that no reader has one.

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

/// The value and how often it was replaced.
#[derive(Debug)]
pub(crate) struct Cell<T> {
    /// Moves after `current` does, while that is locked.
    replaced: AtomicU64,
    current: Mutex<Arc<T>>,
    /// Old values that readers may still have.
    retired: Mutex<Vec<Arc<T>>>,
}

impl<T> Cell<T> {
    pub(crate) fn new(value: T) -> Self {
        let (replaced, retired) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        Self { replaced, current: Mutex::new(Arc::new(value)), retired }
    }

    /// Replaces the value, and returns the new one. Readers see it from their next read on.
    pub(crate) fn replace(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        let mut current = lock(&self.current);
        let old = std::mem::replace(&mut *current, Arc::clone(&value));
        // Retired before a reader can drop its reference.
        lock(&self.retired).push(old);
        self.replaced.fetch_add(1, Ordering::Release);
        value
    }

    /// Drops the old values that no reader has any more.
    pub(crate) fn reclaim(&self) {
        let mut retired = lock(&self.retired);
        // Readers clone the current value only, so a value without readers gets none.
        let (unused, used) =
            retired.drain(..).partition::<Vec<_>, _>(|value| Arc::strong_count(value) == 1);
        *retired = used;
        drop(retired);
        drop(unused);
    }

    pub(crate) fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Acquire)
    }

    /// The value, for a moment.
    pub(crate) fn current(&self) -> Arc<T> {
        Arc::clone(&lock(&self.current))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while a lock is held.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// One reader's handle.
#[derive(Debug)]
pub(crate) struct Handle<T> {
    cell: Arc<Cell<T>>,
    seen: u64,
    value: Arc<T>,
}

impl<T> Handle<T> {
    pub(crate) fn new(cell: &Arc<Cell<T>>) -> Self {
        // The count first: a replacement in between is then seen as one, and read again.
        let seen = cell.replaced();
        Self { cell: Arc::clone(cell), seen, value: cell.current() }
    }

    /// The newest value.
    #[inline]
    pub(crate) fn get(&mut self) -> &T {
        if self.cell.replaced() != self.seen {
            self.refresh();
        }
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

/// Every interleaving of a few threads, tried by loom.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::{Arc, Cell, Handle};
    use loom::thread;

    /// All interleavings with at most three preemptions; more take hours and find no more.
    fn model(check: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(check);
    }

    #[test]
    fn loom_readers_see_whole_values_that_never_go_back() {
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
