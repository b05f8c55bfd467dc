//! Retries `bind` while the previous owner of an address shuts down.
//!
//! After a server was killed, the kernel closes its `io_uring` instances with a delay, and its
//! sockets listen until then. The next server may start at once, and waits for that delay.

use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum time that the previous owner may take to shut down.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Maximum number of retries. A server with too many clients also closes new connections, but
/// continues to listen.
const MAX_TRIES: usize = 8;

/// Listens on a network address. Retries if the address is in use by a process that is shutting
/// down.
pub(crate) fn listen_tcp<T>(
    address: SocketAddr,
    mut listen: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    for _ in 0..MAX_TRIES {
        match listen() {
            Err(error) if error.kind() == ErrorKind::AddrInUse && becomes_free(address) => {}
            listening => return listening,
        }
    }
    listen()
}

/// Waits up to [`PATIENCE`]. Returns whether no process listens on the address any more.
fn becomes_free(mut address: SocketAddr) -> bool {
    if address.ip().is_unspecified() {
        match address {
            SocketAddr::V4(_) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            SocketAddr::V6(_) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        }
    }
    match TcpStream::connect_timeout(&address, PATIENCE) {
        Ok(stream) => stream.set_read_timeout(Some(PATIENCE)).is_ok() && is_closed_by_peer(stream),
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}

/// Returns whether the peer closes a connection before its read timeout. A process that is shutting
/// down sends nothing.
pub(crate) fn is_closed_by_peer(mut stream: impl Read) -> bool {
    match stream.read(&mut [0]) {
        Ok(len) => len == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn bind_waits_for_a_listener_that_closes() {
        let first = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = first.local_addr().expect("an address");
        let mut first = Some(first);
        // The previous owner begins to shut down only after the address was found in use.
        let mut ending = None;
        let listening = listen_tcp(address, || {
            let listening = TcpListener::bind(address);
            if let Some(first) = first.take() {
                ending = Some(std::thread::spawn(move || drop(first.accept())));
            }
            listening
        });
        ending.expect("it was taken").join().expect("a thread");
        assert_eq!(listening.expect("it is free").local_addr().ok(), Some(address));
    }

    #[test]
    fn bind_fails_if_a_listener_accepts_and_stays() {
        let first = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = first.local_addr().expect("an address");
        let hanging_up = std::thread::spawn(move || {
            for _ in 0..MAX_TRIES {
                drop(first.accept());
            }
            first
        });
        let mut tries = 0;
        let listening = listen_tcp(address, || {
            tries += 1;
            TcpListener::bind(address)
        });
        assert_eq!(listening.expect_err("it is taken").kind(), ErrorKind::AddrInUse);
        assert_eq!(tries, MAX_TRIES + 1);
        drop(hanging_up.join().expect("a thread"));
    }
}
