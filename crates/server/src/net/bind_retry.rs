//! Addresses that are taken, and whether whoever has one is about to go.
//!
//! When a server is killed, the kernel takes its rings apart a little later, and listens for it
//! until then. The next server, which may be started at once, waits for that.

use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long somebody who is about to go may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// How often somebody may hang up and still listen, such as a server that has too many clients.
const MAX_TRIES: usize = 8;

/// Listens at an address of the network, which somebody who is about to go may still have.
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

/// Whether nobody listens there, or nobody does any more after a while.
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

/// Whether the other side ends a connection that has a timeout. Nobody who is about to go says
/// anything.
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
    fn a_listener_that_goes_is_waited_for() {
        let first = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = first.local_addr().expect("an address");
        let mut first = Some(first);
        // Each time it is found taken, and only then, whoever has it begins to go.
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
    fn a_listener_that_hangs_up_and_stays_is_given_up_on() {
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
