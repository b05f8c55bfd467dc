//! Single-flight within a process: threads and tasks that miss the same bytes share one fetch.

use crate::key::Key;
use crate::ranges::push;
use std::collections::HashMap;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The fetches in progress in this process.
#[derive(Debug, Default)]
pub(crate) struct Flights(Arc<Mutex<FlightMap>>);

/// The fetches in progress, by the name of the object.
type FlightMap = HashMap<[u8; 16], Vec<Arc<FlightState>>>;

/// A fetch in progress, as its flight and its waiters share it.
#[derive(Debug)]
struct FlightState {
    range: Range<u64>,
    progress: Mutex<Progress>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    fetched: Option<Fetched>,
    wakers: Vec<Waker>,
}

/// The result of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The bytes are in the cache: the waiter can look them up.
    Stored,
    /// The bytes of the whole range, which the cache could not keep.
    Bytes(Arc<[u8]>),
    /// The fetch failed. A waiter that still needs the bytes looks them up and may fetch them.
    Failed,
}

/// How missing ranges are fetched: see [`Chunks::single_flight`](crate::Chunks::single_flight).
#[derive(Debug)]
#[must_use]
pub struct SingleFlight {
    /// The ranges that the caller must fetch.
    pub flights: Vec<Flight>,
    /// The ranges that other callers are fetching.
    pub waiters: Vec<Waiter>,
}

/// A fetch that its owner has to do. Dropping it without [`Flight::finish`] reports to its waiters
/// that it failed.
#[derive(Debug)]
#[must_use]
pub struct Flight {
    flights: Arc<Mutex<FlightMap>>,
    name: [u8; 16],
    state: Arc<FlightState>,
}

/// Waits for a fetch of another caller: a thread with [`Waiter::wait`], a task as a future.
#[derive(Debug)]
#[must_use]
pub struct Waiter(Arc<FlightState>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Flights {
    /// Returns a flight for each range that no caller is fetching, and waiters for the others. The
    /// missing ranges are in order and do not touch.
    pub(crate) fn join(&self, key: &Key, missing: &[Range<u64>]) -> SingleFlight {
        let mut single_flight = SingleFlight { flights: Vec::new(), waiters: Vec::new() };
        let mut flights = lock(&self.0);
        let in_progress = flights.entry(key.name).or_default();
        let mut sorted: Vec<Arc<FlightState>> = in_progress.clone();
        sorted.sort_by_key(|flight| flight.range.start);
        for range in missing {
            let mut start = range.start;
            let mut free = Vec::new();
            for flight in &sorted {
                if flight.range.end <= start || flight.range.start >= range.end {
                    continue;
                }
                if start < flight.range.start {
                    push(&mut free, start..flight.range.start);
                }
                start = flight.range.end;
                if !single_flight.waiters.iter().any(|waiter| Arc::ptr_eq(&waiter.0, flight)) {
                    single_flight.waiters.push(Waiter(flight.clone()));
                }
            }
            if start < range.end {
                push(&mut free, start..range.end);
            }
            for range in free {
                let (progress, ended) = (Mutex::default(), Condvar::new());
                let state = Arc::new(FlightState { range, progress, ended });
                in_progress.push(state.clone());
                let (flights, name) = (self.0.clone(), key.name);
                single_flight.flights.push(Flight { flights, name, state });
            }
        }
        if in_progress.is_empty() {
            flights.remove(&key.name);
        }
        single_flight
    }
}

impl Flight {
    /// Returns the range to fetch.
    pub fn range(&self) -> Range<u64> {
        self.state.range.clone()
    }

    /// Returns a waiter for this fetch, for a caller that lets another thread or task do it.
    pub fn waiter(&self) -> Waiter {
        Waiter(self.state.clone())
    }

    /// Returns whether there are waiters for this fetch. Callers that join later are not counted;
    /// if the flight is dropped, they find out that it failed.
    pub fn is_awaited(&self) -> bool {
        // `Flights::join` copies all flights for a moment, under this lock.
        let _flights = lock(&self.flights);
        Arc::strong_count(&self.state) > 2
    }

    /// Reports the result to all waiters.
    pub fn finish(self, fetched: Fetched) {
        self.end(fetched);
    }

    fn end(&self, fetched: Fetched) {
        let mut flights = lock(&self.flights);
        if let Some(in_progress) = flights.get_mut(&self.name) {
            in_progress.retain(|flight| !Arc::ptr_eq(flight, &self.state));
            if in_progress.is_empty() {
                flights.remove(&self.name);
            }
        }
        drop(flights);
        let mut progress = lock(&self.state.progress);
        if progress.fetched.is_none() {
            progress.fetched = Some(fetched);
        }
        let wakers = std::mem::take(&mut progress.wakers);
        drop(progress);
        self.state.ended.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.end(Fetched::Failed);
    }
}

impl Waiter {
    /// Returns the range that is being fetched.
    pub fn range(&self) -> Range<u64> {
        self.0.range.clone()
    }

    /// Waits until the fetch has ended, and returns its result.
    pub fn wait(self) -> Fetched {
        let mut progress = lock(&self.0.progress);
        loop {
            if let Some(fetched) = &progress.fetched {
                return fetched.clone();
            }
            progress = self.0.ended.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Future for Waiter {
    type Output = Fetched;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Fetched> {
        let mut progress = lock(&self.0.progress);
        if let Some(fetched) = &progress.fetched {
            return Poll::Ready(fetched.clone());
        }
        if !progress.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            progress.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}
