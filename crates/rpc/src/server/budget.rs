//! The limit of the memory of requests and responses.

use crate::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Budget {
    max: u64,
    held: AtomicU64,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    pub(crate) fn new(max: u64) -> Arc<Self> {
        Arc::new(Self { max, held: AtomicU64::new(0) })
    }

    /// Charges bytes before they are allocated. Fails if the limit would be exceeded.
    pub(crate) fn charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, Error> {
        let held = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            held.checked_add(bytes).filter(|sum| *sum <= self.max)
        });
        match held {
            Ok(_) => Ok(Charge { budget: Arc::clone(self), bytes }),
            Err(held) => Err(Error::memory(bytes, held, self.max)),
        }
    }

    /// Charges bytes that are allocated already; they may exceed the limit.
    pub(crate) fn hold(self: &Arc<Self>, bytes: u64) -> Charge {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Charge { budget: Arc::clone(self), bytes }
    }

    /// Returns the bytes that are held.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_the_limit() {
        let budget = Budget::new(100);
        let first = budget.charge(60).expect("room");
        let error = budget.charge(41).expect_err("no room");
        assert_eq!(error.code(), "memory");
        let second = budget.charge(40).expect("room");
        assert_eq!(budget.held(), 100);
        assert!(budget.charge(u64::MAX).is_err());
        drop(first);
        assert_eq!(budget.held(), 40);
        // Allocated bytes count even if they exceed the limit.
        let third = budget.hold(100);
        assert!(budget.charge(1).is_err());
        drop((second, third));
        assert_eq!(budget.held(), 0);
    }
}
