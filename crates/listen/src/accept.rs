//! The loop that accepts connections.

use crate::room::Room;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The wait after a connection could not be accepted, as when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// Connections that each listener accepts beyond the maximum. Only then is it known that their
/// clients wait, and that other connections must make room.
const MAX_WAITING: usize = 8;

/// Listens at an address, and returns the address with the port that was free.
///
/// # Errors
///
/// Fails if the address cannot be listened at; the error names it.
pub fn bind(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let listener = std::net::TcpListener::bind(address).map_err(named)?;
    listener.set_nonblocking(true).map_err(named)?;
    let bound = listener.local_addr().map_err(named)?;
    Ok((listener, bound))
}

/// Accepts connections until the server stops, and returns when all of them have ended. Each is
/// served by a task of its own once it has a place in `room`. Those that wait for a place when the
/// server stops are closed, and so is the room.
///
/// `refused` is called with the reason when a connection could not be accepted.
pub async fn accept<S, F>(
    listener: TcpListener,
    room: Arc<Room>,
    stops: impl Future<Output = ()>,
    serve: S,
    refused: impl Fn(&io::Error),
) where
    S: Fn(TcpStream) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let waiting = Arc::new(Semaphore::new(MAX_WAITING));
    let mut stops = pin!(stops);
    loop {
        let accepted = async {
            // Never closed.
            let wait = Arc::clone(&waiting).acquire_owned().await.ok();
            listener.accept().await.map(|(stream, _)| (stream, wait))
        };
        let accepted: io::Result<_> = tokio::select! {
            () = &mut stops => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, wait)) => {
                let (room, served) = (Arc::clone(&room), serve(stream));
                connections.spawn(async move {
                    let place = room.enter().await;
                    drop(wait);
                    if place.is_some() {
                        served.await;
                    }
                });
            }
            Err(error) => {
                refused(&error);
                sleep(PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    // The port is free again.
    drop(listener);
    room.close();
    while connections.join_next().await.is_some() {}
}
