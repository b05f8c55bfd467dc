//! Lets the map move while no transaction of this process is open.
//!
//! Each transaction is counted when it begins and when it ends, in one of many counters that lie in
//! cache lines of their own, chosen by thread: readers on different cores write to different lines.
//!
//! A thread that wants to move the map waits until the counters are zero, but no longer than it is
//! told. New transactions go on meanwhile: a transaction that stays open for long must not stall
//! the others. Waiting has rounds of two steps.
//!
//! 1. With the gate open, the thread waits until the transactions of the round before have ended,
//!    begins a new round, in which new transactions are counted, and waits for those of the round
//!    that was.
//! 2. Only transactions that began lately are open now. It shuts the gate for a moment, in which
//!    they end and new ones wait. If one stays open for longer, the gate opens, and the next round
//!    begins.
//!
//! So a long transaction keeps the thread in the first step, and no other transaction waits for it.

use crate::clock::deadline;
use crate::fork::Owner;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Threads share this many pairs of counters.
const STRIPES: usize = 64;
/// How long new transactions wait in the first round, at most. Each round doubles it.
const FIRST_SHUT: Duration = Duration::from_millis(1);
/// How long new transactions wait in any round, at most.
const MAX_SHUT: Duration = Duration::from_millis(64);

/// Bit of `Gate::state`: the round, which counters of new transactions are chosen by.
const ROUND: u8 = 1;
/// Bit of `Gate::state`: a thread waits for the transactions of the other round.
const AWAITED: u8 = 2;
/// Bit of `Gate::state`: new transactions wait.
const SHUT: u8 = 4;

/// The counters of one stripe, by round, in cache lines of their own; two lines, since processors
/// fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe([AtomicUsize; 2]);

#[derive(Debug)]
pub(crate) struct Gate {
    state: AtomicU8,
    stripes: Box<[Stripe]>,
    /// Held while `state` changes, and by threads that wait for it or for the counters.
    lock: Mutex<Queue>,
    changed: Condvar,
    /// The process that made it: a child made by `fork` must not wait for the lock.
    owner: Owner,
}

/// Held by the thread that waits for all transactions to end; one at a time.
#[derive(Debug, Default)]
struct Queue {
    is_taken: bool,
}

/// Which counter a transaction is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    stripe: u8,
    round: u8,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU8::new(0),
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            lock: Mutex::default(),
            changed: Condvar::new(),
            owner: Owner::this(),
        }
    }

    /// Counts a transaction that is about to begin. Waits while the gate is shut.
    pub(crate) fn enter(&self) -> Place {
        let stripe = stripe_of_thread();
        loop {
            let round = self.state.load(Ordering::Relaxed) & ROUND;
            let place = Place { stripe, round };
            // Counted first, then looked: a thread that shuts the gate does it the other way round.
            self.counter(place).fetch_add(1, Ordering::SeqCst);
            if self.state.load(Ordering::SeqCst) & SHUT == 0 {
                return place;
            }
            self.leave(place);
            let mut queue = self.lock();
            while self.state.load(Ordering::SeqCst) & SHUT != 0 {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Counts a transaction that has ended.
    pub(crate) fn leave(&self, place: Place) {
        self.counter(place).fetch_sub(1, Ordering::SeqCst);
        let state = self.state.load(Ordering::SeqCst);
        let is_awaited =
            state & SHUT != 0 || (state & AWAITED != 0 && state & ROUND != place.round);
        if is_awaited && self.owner.is_this() {
            let _queue = self.lock();
            self.changed.notify_all();
        }
    }

    /// Returns how many transactions are open in this process.
    pub(crate) fn inside(&self) -> usize {
        self.inside_round(0) + self.inside_round(ROUND)
    }

    /// Returns whether a thread waits for transactions to end.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self) -> bool {
        self.state.load(Ordering::SeqCst) & AWAITED != 0
    }

    /// Runs a closure while no transaction is open. Returns `None` if some transactions stayed open
    /// for longer than `patience`. The caller must have no open transaction.
    pub(crate) fn alone<R>(&self, patience: Duration, act: impl FnOnce() -> R) -> Option<R> {
        let deadline = deadline(patience);
        let (mut queue, is_free) = self.wait(self.lock(), deadline, |queue| !queue.is_taken);
        if !is_free {
            return None;
        }
        queue.is_taken = true;
        self.state.fetch_or(AWAITED, Ordering::SeqCst);
        let mut shut = FIRST_SHUT;
        let mut is_alone = false;
        while !is_alone {
            let older_ended;
            (queue, older_ended) = self.wait_for_older(queue, deadline);
            if !older_ended {
                break;
            }
            self.state.fetch_or(SHUT, Ordering::SeqCst);
            let until = deadline.min(Instant::now() + shut);
            (queue, is_alone) = self.wait(queue, until, |_| self.inside() == 0);
            if !is_alone {
                self.state.fetch_and(!SHUT, Ordering::SeqCst);
                self.changed.notify_all();
                shut = (shut * 2).min(MAX_SHUT);
            }
        }
        let done = is_alone.then(act);
        self.state.fetch_and(ROUND, Ordering::SeqCst);
        queue.is_taken = false;
        drop(queue);
        self.changed.notify_all();
        done
    }

    /// Waits until all transactions have ended that are open now, while others begin. Returns
    /// whether they have by the deadline.
    fn wait_for_older<'g>(
        &'g self,
        queue: MutexGuard<'g, Queue>,
        deadline: Instant,
    ) -> (MutexGuard<'g, Queue>, bool) {
        let round = self.state.load(Ordering::SeqCst) & ROUND;
        // Some may be left of the round before: their counters are needed for the new round.
        let earlier = |_: &Queue| self.inside_round(round ^ ROUND) == 0;
        let (queue, ended) = self.wait(queue, deadline, earlier);
        if !ended {
            return (queue, false);
        }
        self.state.fetch_xor(ROUND, Ordering::SeqCst);
        self.wait(queue, deadline, |_| self.inside_round(round) == 0)
    }

    /// Waits until something holds. Returns whether it does by the deadline.
    fn wait<'g>(
        &self,
        mut queue: MutexGuard<'g, Queue>,
        deadline: Instant,
        holds: impl Fn(&Queue) -> bool,
    ) -> (MutexGuard<'g, Queue>, bool) {
        loop {
            if holds(&queue) {
                return (queue, true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (queue, false);
            }
            let waited = self.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn counter(&self, place: Place) -> &AtomicUsize {
        &self.stripes[usize::from(place.stripe)].0[usize::from(place.round)]
    }

    /// Returns how many transactions of a round are open.
    fn inside_round(&self, round: u8) -> usize {
        let counters = self.stripes.iter().map(|stripe| &stripe.0[usize::from(round)]);
        counters.map(|counter| counter.load(Ordering::SeqCst)).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is whole after each statement.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the stripe that a thread counts its transactions in.
fn stripe_of_thread() -> u8 {
    thread_local! {
        static STRIPE: u8 = {
            let mut hasher = DefaultHasher::new();
            std::thread::current().id().hash(&mut hasher);
            (hasher.finish() % STRIPES as u64) as u8
        };
    }
    // A thread that is ending has no such value any more; any counter will do.
    STRIPE.try_with(|stripe| *stripe).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    #[test]
    fn short_transactions_that_never_cease_do_not_keep_a_thread_from_being_alone() {
        let (gate, done) = (Gate::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !done.load(Ordering::SeqCst) {
                        let place = gate.enter();
                        std::thread::yield_now();
                        gate.leave(place);
                    }
                });
            }
            let alone = || gate.alone(Duration::from_mins(10), || gate.inside());
            let inside: Vec<_> = (0..50).map(|_| alone()).collect();
            done.store(true, Ordering::SeqCst);
            // A thread that looks whether the gate is shut counts itself for that moment.
            assert!(inside.iter().all(|inside| inside.is_some_and(|n| n <= 4)), "{inside:?}");
        });
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

    /// Waits until something holds; fails after a minute.
    fn until(what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !holds() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn new_transactions_do_not_wait_for_one_that_stays_open() {
        let gate = Gate::new();
        // Whichever round the one that stays open is counted in.
        for _ in 0..3 {
            let stays = gate.enter();
            std::thread::scope(|scope| {
                let moving = scope.spawn(|| gate.alone(Duration::from_hours(1), || ()));
                until("a thread waits to be alone", || gate.is_awaited());
                for _ in 0..1000 {
                    gate.leave(gate.enter());
                    assert_eq!(gate.state.load(Ordering::SeqCst) & SHUT, 0, "the gate was shut");
                }
                assert!(!moving.is_finished(), "it did not wait");
                gate.leave(stays);
                assert_eq!(moving.join().expect("no panic"), Some(()));
            });
        }
    }

    #[test]
    fn threads_that_want_to_be_alone_wait_no_longer_than_their_patience_together() {
        let gate = Gate::new();
        let stays = gate.enter();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| gate.alone(Duration::from_hours(1), || ()));
            until("a thread waits to be alone", || gate.is_awaited());
            assert_eq!(gate.alone(Duration::from_millis(1), || ()), None);
            assert!(!first.is_finished());
            gate.leave(stays);
            assert_eq!(first.join().expect("no panic"), Some(()));
        });
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
