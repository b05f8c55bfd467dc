//! Lets the map move while no transaction of this process is open.
//!
//! A transaction enters and leaves, each time counted in one of many counters that lie in cache
//! lines of their own, chosen by thread: so readers of different cores write nothing that another
//! one reads. Whoever wants to move the map shuts the gate, waits until all counters are zero, but
//! not for ever, and opens it again. A transaction that comes while it is shut waits.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const STRIPES: usize = 64;

/// A counter in a cache line of its own; two lines, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicUsize);

#[derive(Debug)]
pub(crate) struct Gate {
    shut: AtomicBool,
    stripes: Box<[Stripe]>,
    /// Held while `shut` changes, and by those who wait for it or for the counters.
    lock: Mutex<()>,
    moved: Condvar,
    /// Held by whoever has the gate shut.
    turn: Mutex<()>,
}

/// Which counter a transaction is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u8);

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            shut: AtomicBool::new(false),
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            lock: Mutex::new(()),
            moved: Condvar::new(),
            turn: Mutex::new(()),
        }
    }

    /// Counts a transaction that is about to begin. Waits while the gate is shut.
    pub(crate) fn enter(&self) -> Place {
        let place = Place::of_thread();
        loop {
            // Counted first, then looked: whoever shuts the gate does it the other way round.
            self.stripes[usize::from(place.0)].0.fetch_add(1, Ordering::SeqCst);
            if !self.shut.load(Ordering::SeqCst) {
                return place;
            }
            self.leave(place);
            let mut guard = held(&self.lock);
            while self.shut.load(Ordering::SeqCst) {
                guard = self.moved.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Counts a transaction that has ended.
    pub(crate) fn leave(&self, place: Place) {
        self.stripes[usize::from(place.0)].0.fetch_sub(1, Ordering::SeqCst);
        if self.shut.load(Ordering::SeqCst) {
            let _guard = held(&self.lock);
            self.moved.notify_all();
        }
    }

    /// Transactions that are open in this process.
    pub(crate) fn inside(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.0.load(Ordering::SeqCst)).sum()
    }

    /// Does something while no transaction is open; `None` when some stayed open for too long. The
    /// caller must have none itself.
    pub(crate) fn alone<R>(&self, patience: Duration, act: impl FnOnce() -> R) -> Option<R> {
        let _turn = held(&self.turn);
        let deadline = Instant::now() + patience;
        let mut guard = held(&self.lock);
        self.shut.store(true, Ordering::SeqCst);
        let mut done = None;
        loop {
            if self.inside() == 0 {
                done = Some(act());
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.moved.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.shut.store(false, Ordering::SeqCst);
        drop(guard);
        self.moved.notify_all();
        done
    }
}

impl Place {
    fn of_thread() -> Self {
        thread_local! {
            static PLACE: u8 = {
                let mut hasher = DefaultHasher::new();
                std::thread::current().id().hash(&mut hasher);
                (hasher.finish() % STRIPES as u64) as u8
            };
        }
        // A thread that is going has no such value any more; any counter will do.
        Self(PLACE.try_with(|place| *place).unwrap_or(0))
    }
}

fn held(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    // Nothing is behind the locks that a panic could leave half done.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn nobody_is_inside_while_one_is_alone() {
        let gate = Arc::new(Gate::new());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let gate = Arc::clone(&gate);
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        let place = gate.enter();
                        gate.leave(place);
                    }
                })
            })
            .collect();
        for _ in 0..50 {
            let inside = gate.alone(Duration::from_mins(1), || gate.inside());
            // A thread that looks whether the gate is shut counts itself for that moment.
            assert!(inside.is_some_and(|inside| inside <= 4), "{inside:?}");
        }
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(gate.inside(), 0);
    }

    #[test]
    fn a_transaction_that_stays_is_not_waited_for_longer_than_patience() {
        let gate = Gate::new();
        let place = gate.enter();
        assert_eq!(gate.alone(Duration::from_millis(1), || ()), None);
        gate.leave(gate.enter());
        gate.leave(place);
        assert_eq!(gate.alone(Duration::ZERO, || 7), Some(7));
    }

    #[test]
    fn one_who_comes_while_it_is_shut_waits() {
        let gate = Arc::new(Gate::new());
        let (sender, receiver) = channel();
        let came = gate.alone(Duration::ZERO, || {
            let gate = Arc::clone(&gate);
            let thread = std::thread::spawn(move || {
                let place = gate.enter();
                sender.send(()).expect("a receiver");
                gate.leave(place);
            });
            (receiver.recv_timeout(Duration::from_millis(5)).is_err(), thread)
        });
        let (waited, thread) = came.expect("nobody is inside");
        assert!(waited, "it came through a gate that was shut");
        receiver.recv().expect("it comes through now");
        thread.join().expect("no panic");
    }
}
