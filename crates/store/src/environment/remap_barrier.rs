//! The remap barrier: lets the map move while no transaction of this process is open.
//!
//! Each transaction is counted when it begins and when it ends, in one of many counters in separate
//! cache lines, chosen by thread: readers on different cores write to different lines.
//!
//! A thread that has to move the map waits, up to a deadline, until the counters are zero. New
//! transactions begin meanwhile: a long transaction must not stall the others. The wait has rounds
//! of two steps:
//!
//! 1. With the barrier open, the thread waits until the transactions of the previous round have
//!    ended, begins a new round, in which new transactions are counted, and waits for those of the
//!    old round.
//! 2. Now all open transactions are recent. The thread closes the barrier briefly, so that they end
//!    and new ones wait. If one stays open for longer, the barrier opens, and the next round
//!    begins.
//!
//! So a long transaction keeps the thread in step 1, and other transactions do not wait for it.

use crate::deadline::deadline;
use crate::process::Owner;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of pairs of counters, which threads share.
const STRIPES: usize = 64;
/// Maximum time that new transactions wait in the first round. Each round doubles it.
const FIRST_CLOSED_TIME: Duration = Duration::from_millis(1);
/// Maximum time that new transactions wait in any round.
const MAX_CLOSED_TIME: Duration = Duration::from_millis(64);

/// Bit of `RemapBarrier::state`: the round, which selects the counters of new transactions.
const ROUND: u8 = 1;
/// Bit of `RemapBarrier::state`: a thread waits for the transactions of the other round.
const AWAITED: u8 = 2;
/// Bit of `RemapBarrier::state`: new transactions wait.
const CLOSED: u8 = 4;

/// The counters of one stripe, by round. Aligned to two cache lines, since processors fetch lines
/// in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe([AtomicUsize; 2]);

#[derive(Debug)]
pub(crate) struct RemapBarrier {
    state: AtomicU8,
    stripes: Box<[Stripe]>,
    /// Held while `state` changes, and by threads that wait for it or for the counters.
    lock: Mutex<Queue>,
    changed: Condvar,
    /// The process that created it: a child made by `fork` must not wait for the lock.
    owner: Owner,
}

/// Which thread waits for all transactions to end: one at a time.
#[derive(Debug, Default)]
struct Queue {
    is_taken: bool,
}

/// Identifies the counter of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CounterId {
    stripe: u8,
    round: u8,
}

impl RemapBarrier {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU8::new(0),
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            lock: Mutex::default(),
            changed: Condvar::new(),
            owner: Owner::this(),
        }
    }

    /// Counts a transaction that is about to begin. Waits while the barrier is closed.
    pub(crate) fn enter(&self) -> CounterId {
        let stripe = stripe_of_thread();
        loop {
            let round = self.state.load(Ordering::Relaxed) & ROUND;
            let counter_id = CounterId { stripe, round };
            // Increments before it reads the state. A thread that closes the barrier does it in the
            // other order.
            self.counter(counter_id).fetch_add(1, Ordering::SeqCst);
            if self.state.load(Ordering::SeqCst) & CLOSED == 0 {
                return counter_id;
            }
            self.leave(counter_id);
            let mut queue = self.lock();
            while self.state.load(Ordering::SeqCst) & CLOSED != 0 {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Counts a transaction that has ended.
    pub(crate) fn leave(&self, counter_id: CounterId) {
        self.counter(counter_id).fetch_sub(1, Ordering::SeqCst);
        let state = self.state.load(Ordering::SeqCst);
        let is_awaited =
            state & CLOSED != 0 || (state & AWAITED != 0 && state & ROUND != counter_id.round);
        if is_awaited && self.owner.is_this() {
            let _queue = self.lock();
            self.changed.notify_all();
        }
    }

    /// Returns the number of open transactions of this process.
    pub(crate) fn open_transactions(&self) -> usize {
        self.open_in_round(0) + self.open_in_round(ROUND)
    }

    /// Returns whether a thread waits for transactions to end.
    #[cfg(test)]
    pub(crate) fn is_awaited(&self) -> bool {
        self.state.load(Ordering::SeqCst) & AWAITED != 0
    }

    /// Runs `action` while no transaction is open. Returns `None` if transactions stayed open for
    /// longer than `patience`. The caller must have no open transaction.
    pub(crate) fn run_exclusive<R>(
        &self,
        patience: Duration,
        action: impl FnOnce() -> R,
    ) -> Option<R> {
        let deadline = deadline(patience);
        let (mut queue, is_free) = self.wait(self.lock(), deadline, |queue| !queue.is_taken);
        if !is_free {
            return None;
        }
        queue.is_taken = true;
        self.state.fetch_or(AWAITED, Ordering::SeqCst);
        let mut closed_time = FIRST_CLOSED_TIME;
        let mut is_exclusive = false;
        while !is_exclusive {
            let older_ended;
            (queue, older_ended) = self.wait_for_older(queue, deadline);
            if !older_ended {
                break;
            }
            self.state.fetch_or(CLOSED, Ordering::SeqCst);
            let until = deadline.min(Instant::now() + closed_time);
            (queue, is_exclusive) = self.wait(queue, until, |_| self.open_transactions() == 0);
            if !is_exclusive {
                self.state.fetch_and(!CLOSED, Ordering::SeqCst);
                self.changed.notify_all();
                closed_time = (closed_time * 2).min(MAX_CLOSED_TIME);
            }
        }
        let done = is_exclusive.then(action);
        self.state.fetch_and(ROUND, Ordering::SeqCst);
        queue.is_taken = false;
        drop(queue);
        self.changed.notify_all();
        done
    }

    /// Waits until all transactions that are open now have ended, while others begin. Returns
    /// whether they have by the deadline.
    fn wait_for_older<'g>(
        &'g self,
        queue: MutexGuard<'g, Queue>,
        deadline: Instant,
    ) -> (MutexGuard<'g, Queue>, bool) {
        let round = self.state.load(Ordering::SeqCst) & ROUND;
        // Transactions of the round before may be open: the new round needs their counters.
        let earlier = |_: &Queue| self.open_in_round(round ^ ROUND) == 0;
        let (queue, ended) = self.wait(queue, deadline, earlier);
        if !ended {
            return (queue, false);
        }
        self.state.fetch_xor(ROUND, Ordering::SeqCst);
        self.wait(queue, deadline, |_| self.open_in_round(round) == 0)
    }

    /// Waits until `is_met` returns true. Returns whether it does by the deadline.
    fn wait<'g>(
        &self,
        mut queue: MutexGuard<'g, Queue>,
        deadline: Instant,
        is_met: impl Fn(&Queue) -> bool,
    ) -> (MutexGuard<'g, Queue>, bool) {
        loop {
            if is_met(&queue) {
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

    fn counter(&self, counter_id: CounterId) -> &AtomicUsize {
        &self.stripes[usize::from(counter_id.stripe)].0[usize::from(counter_id.round)]
    }

    /// Returns the number of open transactions of a round.
    fn open_in_round(&self, round: u8) -> usize {
        let counters = self.stripes.iter().map(|stripe| &stripe.0[usize::from(round)]);
        counters.map(|counter| counter.load(Ordering::SeqCst)).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is consistent after each statement.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the stripe in which the current thread counts its transactions.
fn stripe_of_thread() -> u8 {
    thread_local! {
        static STRIPE: u8 = {
            let mut hasher = DefaultHasher::new();
            std::thread::current().id().hash(&mut hasher);
            (hasher.finish() % STRIPES as u64) as u8
        };
    }
    // A thread that is ending has no such variable. Any counter works.
    STRIPE.try_with(|stripe| *stripe).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    #[test]
    fn continuous_short_transactions_do_not_prevent_exclusive_access() {
        let (barrier, done) = (RemapBarrier::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !done.load(Ordering::SeqCst) {
                        let counter_id = barrier.enter();
                        std::thread::yield_now();
                        barrier.leave(counter_id);
                    }
                });
            }
            let run_exclusive =
                || barrier.run_exclusive(Duration::from_mins(10), || barrier.open_transactions());
            let open_transactions: Vec<_> = (0..50).map(|_| run_exclusive()).collect();
            done.store(true, Ordering::SeqCst);
            // A thread that checks whether the barrier is closed is counted for that moment.
            assert!(
                open_transactions
                    .iter()
                    .all(|open_transactions| open_transactions.is_some_and(|n| n <= 4)),
                "{open_transactions:?}"
            );
        });
        assert_eq!(barrier.open_transactions(), 0);
    }

    #[test]
    fn a_transaction_that_stays_is_not_waited_for_longer_than_patience() {
        let barrier = RemapBarrier::new();
        let counter_id = barrier.enter();
        assert_eq!(barrier.run_exclusive(Duration::from_millis(1), || ()), None);
        barrier.leave(barrier.enter());
        barrier.leave(counter_id);
        assert_eq!(barrier.run_exclusive(Duration::ZERO, || 7), Some(7));
    }

    /// Waits until something holds; panics after a minute.
    fn until(what: &str, is_met: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !is_met() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn new_transactions_do_not_wait_for_one_that_stays_open() {
        let barrier = RemapBarrier::new();
        // In whichever round the long transaction is counted.
        for _ in 0..3 {
            let stays = barrier.enter();
            std::thread::scope(|scope| {
                let moving = scope.spawn(|| barrier.run_exclusive(Duration::from_hours(1), || ()));
                until("a thread waits for exclusive access", || barrier.is_awaited());
                for _ in 0..1000 {
                    barrier.leave(barrier.enter());
                    assert_eq!(
                        barrier.state.load(Ordering::SeqCst) & CLOSED,
                        0,
                        "the barrier was closed"
                    );
                }
                assert!(!moving.is_finished(), "it did not wait");
                barrier.leave(stays);
                assert_eq!(moving.join().expect("no panic"), Some(()));
            });
        }
    }

    #[test]
    fn threads_that_wait_for_exclusive_access_wait_no_longer_than_their_patience() {
        let barrier = RemapBarrier::new();
        let stays = barrier.enter();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| barrier.run_exclusive(Duration::from_hours(1), || ()));
            until("a thread waits for exclusive access", || barrier.is_awaited());
            assert_eq!(barrier.run_exclusive(Duration::from_millis(1), || ()), None);
            assert!(!first.is_finished());
            barrier.leave(stays);
            assert_eq!(first.join().expect("no panic"), Some(()));
        });
    }

    #[test]
    fn a_transaction_that_begins_while_the_barrier_is_closed_waits() {
        let barrier = Arc::new(RemapBarrier::new());
        let (sender, receiver) = channel();
        let came = barrier.run_exclusive(Duration::ZERO, || {
            let barrier = Arc::clone(&barrier);
            let thread = std::thread::spawn(move || {
                let counter_id = barrier.enter();
                sender.send(()).expect("a receiver");
                barrier.leave(counter_id);
            });
            (receiver.recv_timeout(Duration::from_millis(5)).is_err(), thread)
        });
        let (waited, thread) = came.expect("no transaction is open");
        assert!(waited, "it began while the barrier was closed");
        receiver.recv().expect("it comes through now");
        thread.join().expect("no panic");
    }
}
