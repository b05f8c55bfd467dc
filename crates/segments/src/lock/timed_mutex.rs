//! A mutex whose threads wait for it no longer than they say.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value that one thread has at a time.
pub(crate) struct TimedMutex<T> {
    /// Locked by the thread that set `is_taken`, so locking it takes no time.
    value: Mutex<T>,
    is_taken: Mutex<bool>,
    freed: Condvar,
}

/// The value of a [`TimedMutex`]. Dropping it gives the value to the next thread.
pub(crate) struct TimedGuard<'a, T> {
    of: &'a TimedMutex<T>,
    value: MutexGuard<'a, T>,
}

impl<T> TimedMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), is_taken: Mutex::new(false), freed: Condvar::new() }
    }

    /// Waits for the value, but no longer than `patience`. Returns `None` if another thread still
    /// has it.
    pub(crate) fn lock(&self, patience: Duration) -> Option<TimedGuard<'_, T>> {
        let is_taken = self.is_taken.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_taken && !patience.is_zero() {
            crate::work_counters::count_wait();
        }
        let waited = self.freed.wait_timeout_while(is_taken, patience, |is_taken| *is_taken);
        let (mut is_taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_taken, true) {
            return None;
        }
        drop(is_taken);
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Some(TimedGuard { of: self, value })
    }
}

impl<T> Drop for TimedGuard<'_, T> {
    fn drop(&mut self) {
        *self.of.is_taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
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
