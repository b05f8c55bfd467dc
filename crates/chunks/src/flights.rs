//! One fetch for each gap: whoever finds bytes missing claims them, and others who miss the same
//! bytes at the same time wait for him.

use crate::key::Key;
use crate::ranges::push;
use std::collections::HashMap;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The fetches that are under way in this process.
#[derive(Debug, Default)]
pub(crate) struct Fills(Arc<Mutex<Flights>>);

/// By the name of the object.
type Flights = HashMap<[u8; 16], Vec<Arc<Flight>>>;

#[derive(Debug)]
struct Flight {
    range: Range<u64>,
    state: Mutex<State>,
    landed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    fetched: Option<Fetched>,
    wakers: Vec<Waker>,
}

/// How a fetch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The bytes are in the cache: look again.
    Stored,
    /// The bytes, which could not be kept, of the whole range of the fetch.
    Bytes(Arc<[u8]>),
    /// They could not be fetched. Whoever still wants them looks again, and may fetch himself.
    Failed,
}

/// What was claimed of a gap.
#[derive(Debug)]
#[must_use]
pub struct Claim {
    /// What the caller is to fetch.
    pub mine: Vec<Ticket>,
    /// What others are fetching already.
    pub theirs: Vec<Waiting>,
}

/// The duty to fetch a range. Dropping it without [`Ticket::finish`] tells those who wait that it
/// failed.
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    flights: Arc<Mutex<Flights>>,
    name: [u8; 16],
    flight: Arc<Flight>,
}

/// Somebody else's fetch: to be waited for by a thread with [`Waiting::wait`], or by a task as a
/// future.
#[derive(Debug)]
#[must_use]
pub struct Waiting(Arc<Flight>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fills {
    /// Claims what nobody is fetching of ranges that are in order and do not touch.
    pub(crate) fn claim(&self, key: &Key, missing: &[Range<u64>]) -> Claim {
        let mut claim = Claim { mine: Vec::new(), theirs: Vec::new() };
        let mut flights = lock(&self.0);
        let under_way = flights.entry(key.name).or_default();
        let mut others: Vec<Arc<Flight>> = under_way.clone();
        others.sort_by_key(|flight| flight.range.start);
        for range in missing {
            let mut from = range.start;
            let mut free = Vec::new();
            for flight in &others {
                if flight.range.end <= from || flight.range.start >= range.end {
                    continue;
                }
                if from < flight.range.start {
                    push(&mut free, from..flight.range.start);
                }
                from = flight.range.end;
                if !claim.theirs.iter().any(|waiting| Arc::ptr_eq(&waiting.0, flight)) {
                    claim.theirs.push(Waiting(flight.clone()));
                }
            }
            if from < range.end {
                push(&mut free, from..range.end);
            }
            for range in free {
                let (state, landed) = (Mutex::default(), Condvar::new());
                let flight = Arc::new(Flight { range, state, landed });
                under_way.push(flight.clone());
                let (flights, name) = (self.0.clone(), key.name);
                claim.mine.push(Ticket { flights, name, flight });
            }
        }
        if under_way.is_empty() {
            flights.remove(&key.name);
        }
        claim
    }
}

impl Ticket {
    /// The range to fetch.
    pub fn range(&self) -> Range<u64> {
        self.flight.range.clone()
    }

    /// A place to wait for this fetch, for whoever has somebody else do it.
    pub fn waiting(&self) -> Waiting {
        Waiting(self.flight.clone())
    }

    /// Whether anybody waits for this fetch. Whoever claims the bytes later does not count, and
    /// finds out that it failed if the ticket is dropped.
    pub fn is_awaited(&self) -> bool {
        // Claims copy all flights for a moment, under this lock.
        let _flights = lock(&self.flights);
        Arc::strong_count(&self.flight) > 2
    }

    /// Tells those who wait how it ended.
    pub fn finish(self, fetched: Fetched) {
        self.land(fetched);
    }

    fn land(&self, fetched: Fetched) {
        let mut flights = lock(&self.flights);
        if let Some(under_way) = flights.get_mut(&self.name) {
            under_way.retain(|flight| !Arc::ptr_eq(flight, &self.flight));
            if under_way.is_empty() {
                flights.remove(&self.name);
            }
        }
        drop(flights);
        let mut state = lock(&self.flight.state);
        if state.fetched.is_none() {
            state.fetched = Some(fetched);
        }
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.flight.landed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.land(Fetched::Failed);
    }
}

impl Waiting {
    /// The range that is being fetched.
    pub fn range(&self) -> Range<u64> {
        self.0.range.clone()
    }

    /// Waits until it was fetched, or could not be.
    pub fn wait(self) -> Fetched {
        let mut state = lock(&self.0.state);
        loop {
            if let Some(fetched) = &state.fetched {
                return fetched.clone();
            }
            state = self.0.landed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Future for Waiting {
    type Output = Fetched;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Fetched> {
        let mut state = lock(&self.0.state);
        if let Some(fetched) = &state.fetched {
            return Poll::Ready(fetched.clone());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}
