//! A mutex that threads wait for with a timeout.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value that one thread uses at a time.
pub(crate) struct TimedMutex<T> {
    /// Locked by the thread that set `is_locked`, so no thread waits for this mutex.
    value: Mutex<T>,
    is_locked: Mutex<bool>,
    freed: Condvar,
}

/// Access to the value of a [`TimedMutex`]. Dropping it passes the value to the next thread.
pub(crate) struct TimedGuard<'a, T> {
    of: &'a TimedMutex<T>,
    value: MutexGuard<'a, T>,
}

impl<T> TimedMutex<T> {
    /// Returns a mutex with a value.
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), is_locked: Mutex::new(false), freed: Condvar::new() }
    }

    /// Waits for the value up to `patience`. Returns `None` if another thread still has it.
    pub(crate) fn lock(&self, patience: Duration) -> Option<TimedGuard<'_, T>> {
        let is_locked = self.is_locked.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_locked && !patience.is_zero() {
            crate::work_counters::count_wait();
        }
        let waited = self.freed.wait_timeout_while(is_locked, patience, |is_locked| *is_locked);
        let (mut is_locked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_locked, true) {
            return None;
        }
        drop(is_locked);
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Some(TimedGuard { of: self, value })
    }
}

impl<T> Drop for TimedGuard<'_, T> {
    fn drop(&mut self) {
        *self.of.is_locked.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.of.freed.notify_one();
    }
}

impl<T> Deref for TimedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for TimedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
