//! Socket files. A killed server leaves its file behind; the next server replaces it if no process
//! listens there.

use super::bind_retry::{PATIENCE, is_closed_by_peer};
use crate::inherited;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Listens on a path, if no other process does, or with the socket of the parent process if it has
/// passed one.
pub(crate) fn listen(path: &Path) -> io::Result<OwnedFd> {
    if let Some(listener) = inherited::unix(path)? {
        return Ok(listener.into());
    }
    // Held until the socket listens. Otherwise another server could consider it a stale socket
    // between bind and listen.
    let lock = lock_folder(path)?;
    let bound = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            check_stale(path)?;
            if lock.is_none() {
                return Err(error);
            }
            fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    };
    bound.map(Into::into)
}

/// Locks the folder of a socket file for this process until the lock is dropped. Returns `None` for
/// a folder that cannot be read.
fn lock_folder(path: &Path) -> io::Result<Option<File>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) else { return Ok(None) };
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        // Does not wait, since another process may hold the lock permanently.
        Err(TryLockError::WouldBlock) => {
            let text = "another process has locked the folder of the socket, perhaps to create a \
                        socket there: retry";
            Err(io::Error::new(ErrorKind::ResourceBusy, text))
        }
        // The file system has no locks.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Checks that the path has a socket on which no process listens.
fn check_stale(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let text = "expected a socket or nothing at this path, found another file";
        return Err(io::Error::new(ErrorKind::AlreadyExists, text));
    }
    // Nonblocking: a server that is too busy to accept would delay the connection.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => Ok(()),
        Err(Errno::AGAIN) => Err(Errno::ADDRINUSE.into()),
        Ok(()) => {
            let stream = UnixStream::from(socket);
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            if is_closed_by_peer(stream) { Ok(()) } else { Err(Errno::ADDRINUSE.into()) }
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_stale_socket_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("resp.sock");
        drop(UnixListener::bind(&path).expect("a socket"));
        assert!(path.exists());
        let socket = listen(&path).expect("the same path");
        UnixStream::connect(&path).expect("a connection");
        drop(socket);
    }

    #[test]
    fn a_socket_file_with_a_listener_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("resp.sock");
        let first = listen(&path).expect("a free path");
        let error = listen(&path).expect_err("a path that is taken");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        UnixStream::connect(&path).expect("the first still listens");
        drop(first);
    }

    #[test]
    fn other_files_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "other data").expect("a file");
        let error = listen(&path).expect_err("a file is there");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).expect("the file"), b"other data");
        let other = folder.path().join("datagrams");
        let _datagrams = UnixDatagram::bind(&other).expect("a socket");
        assert!(listen(&other).is_err());
        assert!(other.exists());
    }

    #[test]
    fn one_of_two_servers_that_start_at_once_binds_the_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("resp.sock");
        drop(UnixListener::bind(&path).expect("a socket"));
        let barrier = std::sync::Barrier::new(8);
        let one = || {
            barrier.wait();
            let socket = listen(&path).ok();
            barrier.wait();
            socket.is_some()
        };
        let count = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            let bound = threads.into_iter().map(|thread| thread.join().expect("a thread"));
            bound.filter(|is_bound| *is_bound).count()
        });
        assert_eq!(count, 1);
    }
}
