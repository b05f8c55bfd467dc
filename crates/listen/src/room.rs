//! The maximum number of connections: clients that wait for one, and connections that end for them.

use crate::activity::Activity;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The connections that a server can serve at once.
#[derive(Debug)]
pub struct Room {
    /// One permit for each connection that can still be served.
    free: Arc<Semaphore>,
    /// Clients that wait for a permit.
    waiting: AtomicUsize,
    /// One permit for each time that a client began to wait. The connection that could have made
    /// room for longest takes it.
    requests: Semaphore,
}

/// The place of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit);

/// A client that waits. It does no longer when this is dropped.
struct Waiting<'a>(&'a Room);

impl Room {
    /// The time in which the client of a connection that may have to make room can show that it
    /// uses the connection: it sends its first request, or hears that it is to send no more.
    pub const GRACE: Duration = Duration::from_millis(500);

    /// Returns the room for so many connections.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(connections)),
            waiting: AtomicUsize::new(0),
            requests: Semaphore::new(0),
        }
    }

    /// Waits until another connection can be served, and returns its place. `None` if the room was
    /// closed.
    pub async fn enter(&self) -> Option<Place> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(Place(permit));
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(self);
        self.requests.add_permits(1);
        Arc::clone(&self.free).acquire_owned().await.ok().map(Place)
    }

    /// Lets no more connections in: those that wait, and later ones, get no place.
    pub fn close(&self) {
        self.free.close();
    }

    /// Waits until a connection has been idle for `idle` without interruption and must end for a
    /// client that waits. Of several such connections, the one that has been idle for longest must.
    /// It waits up to twice as long.
    pub async fn must_make_room(&self, activity: &Activity, idle: Duration) {
        loop {
            activity.idle_for(idle).await;
            let before = activity.idle_after();
            self.must_leave().await;
            if before.is_some() && before == activity.idle_after() {
                return;
            }
            // This connection is in use again: another one makes room.
            self.requests.add_permits(1);
        }
    }

    /// Waits until a client waits for the place of the connection that calls this. Of several that
    /// call this, the first is chosen.
    async fn must_leave(&self) {
        while let Ok(request) = self.requests.acquire().await {
            request.forget();
            // A client may have got the place of a connection that ended by itself.
            if self.waiting.load(Ordering::Relaxed) > 0 {
                return;
            }
        }
    }
}

impl Drop for Waiting<'_> {
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
    fn the_connection_that_could_leave_for_longest_leaves_for_a_client_that_waits() {
        let room = Room::new(1);
        let Poll::Ready(first) = poll(pin!(room.enter())) else { panic!("there is room") };
        let (mut older, mut newer) = (pin!(room.must_leave()), pin!(room.must_leave()));
        assert!(poll(older.as_mut()).is_pending() && poll(newer.as_mut()).is_pending());
        let mut client = pin!(room.enter());
        assert!(poll(client.as_mut()).is_pending());
        assert!(poll(newer.as_mut()).is_pending());
        assert!(poll(older).is_ready());
        assert!(poll(newer).is_pending(), "one client waits");
        drop(first);
        assert!(matches!(poll(client), Poll::Ready(Some(_))));
    }

    #[test]
    fn no_connection_leaves_for_a_client_that_waits_no_longer() {
        let room = Room::new(1);
        let Poll::Ready(first) = poll(pin!(room.enter())) else { panic!("there is room") };
        let mut served = Box::pin(room.enter());
        let mut cancelled = Box::pin(room.enter());
        assert!(poll(served.as_mut()).is_pending() && poll(cancelled.as_mut()).is_pending());
        drop(cancelled);
        drop(first);
        assert!(matches!(poll(served.as_mut()), Poll::Ready(Some(_))));
        drop(served);
        assert!(poll(pin!(room.must_leave())).is_pending());
    }

    #[test]
    fn no_client_waits_for_a_room_that_is_closed() {
        let room = Room::new(1);
        let Poll::Ready(Some(_first)) = poll(pin!(room.enter())) else { panic!("there is room") };
        let mut client = pin!(room.enter());
        assert!(poll(client.as_mut()).is_pending());
        room.close();
        assert!(matches!(poll(client), Poll::Ready(None)));
        assert!(matches!(poll(pin!(room.enter())), Poll::Ready(None)));
    }
}
