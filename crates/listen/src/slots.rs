//! Limits the number of connections. Clients beyond the limit wait, and idle connections are closed
//! for them.

use crate::activity::Activity;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of a server, which limit its connections: each served connection has one.
#[derive(Debug)]
pub struct ConnectionSlots {
    /// One permit for each free slot.
    free: Arc<Semaphore>,
    /// Number of clients that wait for a slot.
    waiting: AtomicUsize,
    /// Requests of waiting clients to close an idle connection: one permit for each time that a
    /// client began to wait. The connection that became idle first takes it.
    requests: Semaphore,
}

/// The slot of a connection. Dropping it frees the slot.
#[derive(Debug)]
pub struct Slot(#[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit);

/// A client that waits for a slot, counted until this is dropped.
struct WaitingClient<'a>(&'a ConnectionSlots);

impl ConnectionSlots {
    /// The time that a client has before its connection may be closed for another client: to send
    /// its first request, or to notice that the server is closing the connection.
    pub const GRACE: Duration = Duration::from_millis(500);

    /// Creates this many free slots.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(connections)),
            waiting: AtomicUsize::new(0),
            requests: Semaphore::new(0),
        }
    }

    /// Waits for a free slot and returns it. Returns `None` after [`close`](Self::close).
    pub async fn acquire(&self) -> Option<Slot> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(Slot(permit));
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = WaitingClient(self);
        self.requests.add_permits(1);
        Arc::clone(&self.free).acquire_owned().await.ok().map(Slot)
    }

    /// Makes [`acquire`](Self::acquire) return `None` from now on, also to connections that wait.
    pub fn close(&self) {
        self.free.close();
    }

    /// Waits until a connection must be closed for a client that waits for a slot. The connection
    /// has been idle for at least `idle` without interruption then. Of several idle connections,
    /// the one that has been idle for longest must be closed. `activity` is that of the connection.
    pub async fn must_yield(&self, activity: &Activity, idle: Duration) {
        loop {
            activity.idle_for(idle).await;
            let before = activity.idle_after();
            self.yield_requested().await;
            if before.is_some() && before == activity.idle_after() {
                return;
            }
            // This connection is in use again: another one must end.
            self.requests.add_permits(1);
        }
    }

    /// Waits until a client waits for a slot and this connection is chosen to end. Connections are
    /// chosen in the order in which they called this.
    async fn yield_requested(&self) {
        while let Ok(request) = self.requests.acquire().await {
            request.forget();
            // The client may have received the slot of a connection that ended by itself.
            if self.waiting.load(Ordering::Relaxed) > 0 {
                return;
            }
        }
    }
}

impl Drop for WaitingClient<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_connection_that_was_idle_first_ends_for_a_client_that_waits() {
        let slots = ConnectionSlots::new(1);
        let Poll::Ready(first) = poll(pin!(slots.acquire())) else { panic!("a free slot") };
        let (mut older, mut newer) = (pin!(slots.yield_requested()), pin!(slots.yield_requested()));
        assert!(poll(older.as_mut()).is_pending() && poll(newer.as_mut()).is_pending());
        let mut client = pin!(slots.acquire());
        assert!(poll(client.as_mut()).is_pending());
        assert!(poll(newer.as_mut()).is_pending());
        assert!(poll(older).is_ready());
        assert!(poll(newer).is_pending(), "one client waits");
        drop(first);
        assert!(matches!(poll(client), Poll::Ready(Some(_))));
    }

    #[test]
    fn no_connection_ends_for_a_client_that_stopped_waiting() {
        let slots = ConnectionSlots::new(1);
        let Poll::Ready(first) = poll(pin!(slots.acquire())) else { panic!("a free slot") };
        let mut served = Box::pin(slots.acquire());
        let mut cancelled = Box::pin(slots.acquire());
        assert!(poll(served.as_mut()).is_pending() && poll(cancelled.as_mut()).is_pending());
        drop(cancelled);
        drop(first);
        assert!(matches!(poll(served.as_mut()), Poll::Ready(Some(_))));
        drop(served);
        assert!(poll(pin!(slots.yield_requested())).is_pending());
    }

    #[test]
    fn no_client_waits_for_a_slot_after_close() {
        let slots = ConnectionSlots::new(1);
        let Poll::Ready(Some(_first)) = poll(pin!(slots.acquire())) else { panic!("a free slot") };
        let mut client = pin!(slots.acquire());
        assert!(poll(client.as_mut()).is_pending());
        slots.close();
        assert!(matches!(poll(client), Poll::Ready(None)));
        assert!(matches!(poll(pin!(slots.acquire())), Poll::Ready(None)));
    }
}
