//! Sockets that the parent process has opened, as systemd does for a socket unit (`LISTEN_FDS`).
//! One that is bound to an address of the settings is used instead of a new one.

use listenfd::ListenFd;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The sockets of this process. None is closed: the parent process has opened them for all of its
/// time.
static SOCKETS: Mutex<Vec<Inherited>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Inherited {
    socket: Socket,
    is_used: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(_, address) => address.fmt(f),
            Self::Unix(_, path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Takes over the sockets that the parent process has opened.
///
/// Removes `LISTEN_FDS` and `LISTEN_PID` from the environment, so that child processes do not take
/// them for theirs. Therefore it must be called before the process has a second thread.
///
/// # Errors
///
/// Fails if one of them is not a listening socket with a network address or a path, or if two have
/// the same address.
pub fn inherit_sockets() -> io::Result<()> {
    // Without it, `LISTEN_FDS` is for another process of this session.
    if std::env::var_os("LISTEN_PID").is_none() {
        return Ok(());
    }
    let mut passed = ListenFd::from_env();
    for at in 0..passed.len() {
        let taken = inherit(&mut passed, at).and_then(|socket| sockets(|all| add(all, socket)));
        taken.map_err(|error| {
            let text = format!("socket {} of LISTEN_FDS: {error}", at + 1);
            io::Error::new(error.kind(), text)
        })?;
    }
    Ok(())
}

/// Adds a socket. Refuses a second one with the same address: a server would use only the first,
/// and the kernel would give connections to both.
fn add(all: &mut Vec<Inherited>, socket: Socket) -> io::Result<()> {
    let address = socket.to_string();
    if let Some(first) = all.iter().position(|each| each.socket.to_string() == address) {
        return Err(io::Error::other(format!(
            "expected each address once, found {address}, which socket {} has, too: remove one \
             from the socket unit",
            first + 1
        )));
    }
    all.push(Inherited { socket, is_used: false });
    Ok(())
}

/// Returns the addresses of the sockets that no server has used.
#[must_use]
pub fn unused_sockets() -> Vec<String> {
    sockets(|all| {
        all.iter().filter(|each| !each.is_used).map(|each| each.socket.to_string()).collect()
    })
}

/// Returns the socket that is bound to an address, if the parent process has passed one.
pub(crate) fn tcp(address: SocketAddr) -> io::Result<Option<TcpListener>> {
    used(|socket| match socket {
        Socket::Tcp(listener, bound) if *bound == address => Some(listener.try_clone()),
        _ => None,
    })
}

/// Returns the socket with a path, if the parent process has passed one.
pub(crate) fn unix(path: &Path) -> io::Result<Option<UnixListener>> {
    used(|socket| match socket {
        Socket::Unix(listener, bound) if bound == path => Some(listener.try_clone()),
        _ => None,
    })
}

/// Returns whether the parent process has created the socket file with a path.
pub(crate) fn has_file(path: &Path) -> bool {
    let is_it = |each: &Inherited| matches!(&each.socket, Socket::Unix(_, bound) if bound == path);
    sockets(|all| all.iter().any(is_it))
}

fn used<T>(find: impl Fn(&Socket) -> Option<io::Result<T>>) -> io::Result<Option<T>> {
    sockets(|all| {
        for each in all {
            if let Some(found) = find(&each.socket) {
                each.is_used = true;
                return found.map(Some);
            }
        }
        Ok(None)
    })
}

fn sockets<T>(action: impl FnOnce(&mut Vec<Inherited>) -> T) -> T {
    action(&mut SOCKETS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn inherit(passed: &mut ListenFd, at: usize) -> io::Result<Socket> {
    let gone = || io::Error::other("it was passed twice");
    if let Ok(listener) = passed.take_tcp_listener(at) {
        let listener = listener.ok_or_else(gone)?;
        check_listening(&listener)?;
        let address = listener.local_addr()?;
        return Ok(Socket::Tcp(listener, address));
    }
    let listener = passed.take_unix_listener(at)?.ok_or_else(gone)?;
    check_listening(&listener)?;
    let address = listener.local_addr()?;
    let path = address.as_pathname().map(Path::to_owned);
    let path = path.ok_or_else(|| io::Error::other("expected a socket with a path"))?;
    Ok(Socket::Unix(listener, path))
}

/// Checks that a socket listens. One of a unit with `Accept=yes` is connected to a client.
fn check_listening(socket: impl std::os::fd::AsFd) -> io::Result<()> {
    if rustix::net::sockopt::socket_acceptconn(socket)? {
        return Ok(());
    }
    let text = "expected a socket that listens, found one that does not: set Accept=no in the \
                socket unit";
    Err(io::Error::other(text))
}
