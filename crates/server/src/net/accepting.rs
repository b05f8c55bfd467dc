//! Accepts connections, and pauses accepting when it fails.
//!
//! If the process or the system has no file descriptor or no memory for another connection,
//! accepting fails, and would fail again at once. So a worker pauses accepting until it closes one
//! of its connections, but at most for [`PAUSE`]: another worker may have closed one. Meanwhile
//! clients wait in the kernel.

use super::listener::Listening;
use super::reactor::{Number, Reactor, Socket};
use crate::protocol::Protocol;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::io;
use std::time::{Duration, Instant};

/// Maximum pause if no connection is closed.
const PAUSE: Duration = Duration::from_millis(100);

/// The listening sockets of a worker.
pub(crate) struct Listeners {
    sockets: Vec<Socket>,
    /// The protocol of each, and whether it is inside TLS.
    protocols: Vec<(Protocol, bool)>,
    /// Listeners that do not accept now.
    paused: Vec<Number>,
    /// When paused listeners accept again.
    resume_at: Option<Instant>,
    /// Whether no connections are accepted any more.
    closed: bool,
}

impl Listeners {
    /// Starts to accept on all listeners.
    pub(crate) fn start(all: Vec<Listening>, reactor: &mut Reactor) -> io::Result<Self> {
        let protocols = all.iter().map(|one| (one.protocol, one.tls)).collect();
        let sockets: Vec<_> = all.into_iter().map(|one| Socket::new(one.socket)).collect();
        let paused = (0..sockets.len()).map(|number| number as Number).collect();
        let mut listeners = Self { sockets, protocols, paused, resume_at: None, closed: false };
        listeners.resume(reactor)?;
        Ok(listeners)
    }

    /// Returns the protocol of a listener, and whether it is inside TLS.
    pub(crate) fn protocol_of(&self, listener: Number) -> (Protocol, bool) {
        self.protocols[listener as usize]
    }

    /// Notes that the reactor ended accepting on a listener, with its error if there was one.
    pub(crate) fn note_ended(
        &mut self,
        listener: Number,
        error: Option<&io::Error>,
        reactor: &mut Reactor,
    ) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        if error.is_none_or(is_of_one_connection) {
            let socket = &self.sockets[listener as usize];
            return reactor.accept(socket, listener);
        }
        self.paused.push(listener);
        self.resume_at.get_or_insert_with(|| Instant::now() + PAUSE);
        Ok(())
    }

    /// Returns the time after which paused listeners must accept again.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.resume_at.map(|resume_at| resume_at.saturating_duration_since(Instant::now()))
    }

    /// Accepts no more connections: clients that connect are refused by the kernel.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.resume_at = None;
        for socket in &self.sockets {
            // Ends pending accept operations, too. Another thread may have shut down a shared
            // socket already.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }

    /// Returns whether no connections are accepted any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Resumes paused listeners once their pause is over.
    pub(crate) fn resume_if_due(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        match self.resume_at {
            Some(resume_at) if Instant::now() >= resume_at => self.resume(reactor),
            _ => Ok(()),
        }
    }

    /// Resumes paused listeners, since a connection was closed.
    pub(crate) fn resume(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        self.resume_at = None;
        if self.closed {
            return Ok(());
        }
        while let Some(listener) = self.paused.pop() {
            reactor.accept(&self.sockets[listener as usize], listener)?;
        }
        Ok(())
    }
}

/// Returns whether a single connection was lost before it was accepted, so that the next one can be
/// accepted at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    [Errno::CONNABORTED, Errno::PROTO, Errno::INTR, Errno::AGAIN]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::reactor::{Backend, Event};
    use std::net::{TcpListener, TcpStream};

    fn accepting_pauses_without_descriptors(kind: Backend) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let mut reactor = Reactor::new(kind, 2).expect("a reactor");
        let mut listeners = Listeners::start(Vec::new(), &mut reactor).expect("listeners");
        listeners.sockets.push(Socket::new(listener.into()));
        assert_eq!(listeners.timeout(), None);
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            let error = io::Error::from(errno);
            listeners.note_ended(0, Some(&error), &mut reactor).expect("it pauses");
            assert!(listeners.timeout().is_some_and(|timeout| timeout <= PAUSE), "{error}");
            let _client = TcpStream::connect(address).expect("a connection");
            let mut events = Vec::new();
            reactor.wait(Some(Duration::ZERO), &mut events).expect("a wait");
            assert!(events.is_empty(), "{events:?}");

            listeners.resume(&mut reactor).expect("it resumes");
            assert_eq!(listeners.timeout(), None);
            reactor.wait(None, &mut events).expect("a wait");
            assert!(matches!(events[..], [Event::Accepted { socket: Ok(_), .. }]), "{events:?}");
            // The next round begins with a reactor that does not accept.
            reactor = Reactor::new(kind, 2).expect("a reactor");
        }
    }

    #[test]
    fn accepting_pauses_without_descriptors_with_io_uring() {
        accepting_pauses_without_descriptors(Backend::Uring);
    }

    #[test]
    fn accepting_pauses_without_descriptors_with_epoll() {
        accepting_pauses_without_descriptors(Backend::Epoll);
    }

    #[test]
    fn an_aborted_connection_does_not_pause_accepting() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut reactor = Reactor::new(Backend::Epoll, 2).expect("a reactor");
        let mut listeners = Listeners::start(Vec::new(), &mut reactor).expect("listeners");
        listeners.sockets.push(Socket::new(listener.into()));
        let error = io::Error::from(Errno::CONNABORTED);
        listeners.note_ended(0, Some(&error), &mut reactor).expect("it continues");
        assert_eq!((listeners.timeout(), &listeners.paused[..]), (None, &[][..]));
    }
}
