//! Selects the I/O backend.

use super::backend::{Backend, Reactor};
use super::event::{Event, Socket};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::thread;
use std::time::Duration;

/// The I/O backend of the worker threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoBackend {
    /// `io_uring` if it works, otherwise `epoll`.
    #[default]
    Auto,
    /// `io_uring`, which requires Linux 6.1 or later.
    Uring,
    /// `epoll`.
    Epoll,
}

impl IoBackend {
    /// Checks that this process can use `io_uring` for connections.
    ///
    /// # Errors
    ///
    /// Returns why not: an operation that the kernel does not have, or that is forbidden.
    pub fn check_uring() -> io::Result<()> {
        // In its own thread: when a ring is closed, the kernel interrupts the thread that created
        // it.
        let trial = thread::spawn(|| try_out(Backend::Uring)).join();
        trial.unwrap_or_else(|_| Err(io::Error::other("the trial of a reactor failed")))
    }

    /// Returns the backend to use on this machine.
    pub(crate) fn choose(self) -> io::Result<Backend> {
        self.choose_by(Self::check_uring)
    }

    fn choose_by(self, try_uring: impl FnOnce() -> io::Result<()>) -> io::Result<Backend> {
        match self {
            Self::Auto => Ok(try_uring().map_or(Backend::Epoll, |()| Backend::Uring)),
            Self::Uring => try_uring().map(|()| Backend::Uring).map_err(|error| {
                let expected = "expected Linux 6.1 or later, and nothing that forbids it";
                io::Error::new(error.kind(), format!("io_uring: {expected}; found: {error}"))
            }),
            Self::Epoll => Ok(Backend::Epoll),
        }
    }
}

/// Receives a byte with a new reactor. Creating one is not sufficient, since its operations were
/// added in different kernel versions, and each can be forbidden.
fn try_out(kind: Backend) -> io::Result<()> {
    let mut reactor = Reactor::new(kind, 2)?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
    let ours = Socket::new(ours);
    reactor.receive(&ours, 0)?;
    rustix::io::write(&theirs, b"?")?;
    let mut events = Vec::new();
    // The byte is available already. The timeout is for a kernel that does not report it.
    reactor.wait(Some(Duration::from_secs(1)), &mut events)?;
    for event in events {
        match event {
            Event::Received { bytes: Ok(Some(filled)), more: true, .. }
                if reactor.bytes(&filled) == b"?" =>
            {
                return Ok(());
            }
            Event::Received { bytes: Err(error), .. } => return Err(error),
            _ => {}
        }
    }
    Err(io::Error::other("it does not receive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden() -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    #[test]
    fn epoll_is_used_without_io_uring() {
        assert_eq!(IoBackend::Auto.choose_by(|| Ok(())).expect("one"), Backend::Uring);
        assert_eq!(IoBackend::Auto.choose_by(forbidden).expect("one"), Backend::Epoll);
    }

    #[test]
    fn a_requested_backend_is_used_or_refused() {
        assert_eq!(IoBackend::Uring.choose_by(|| Ok(())).expect("one"), Backend::Uring);
        assert_eq!(IoBackend::Epoll.choose_by(|| Ok(())).expect("one"), Backend::Epoll);
        let error = IoBackend::Uring.choose_by(forbidden).expect_err("it is forbidden");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().starts_with("io_uring: expected Linux 6.1 or later"), "{error}");
    }

    #[test]
    fn a_working_backend_passes_its_trial() {
        for kind in [Backend::Uring, Backend::Epoll] {
            try_out(kind).unwrap_or_else(|error| panic!("{kind}: {error}"));
        }
    }
}
