//! Listens to what is written to one file on its way to the kernel. This file holds unsafe code:
//! it takes the place of the functions of the C library that LMDB writes with, in this test alone.
//! Each hands on to the kernel what it was called with, and notes it when it concerns the file.

use libc::{c_int, c_long, c_void, iovec, off_t, size_t, ssize_t};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What happened to the file, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Bytes were written. Only those of a file that was opened so are safe at once.
    Write { offset: u64, bytes: Vec<u8>, safe: bool },
    /// All bytes before are safe now.
    Sync,
    /// The test says where it is.
    Said(usize),
}

/// The folder of the file that is listened to, and what was heard.
struct Listening {
    folder: String,
    events: Vec<Event>,
}

static LISTENING: Mutex<Option<Listening>> = Mutex::new(None);
/// One test listens at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Notes what happens to `data.mdb` in a folder until it is asked for.
pub(crate) struct Listener(MutexGuard<'static, ()>);

impl Listener {
    pub(crate) fn start(folder: &Path) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = folder.to_str().expect("a name in UTF-8").to_owned();
        *listening() = Some(Listening { folder, events: Vec::new() });
        Self(turn)
    }

    pub(crate) fn stop(self) -> Vec<Event> {
        let events = listening().take().expect("it listens").events;
        drop(self.0);
        events
    }
}

/// Notes what the test says, behind all that happened to the file before.
pub(crate) fn say(what: usize) {
    note(|| Event::Said(what));
}

fn listening() -> MutexGuard<'static, Option<Listening>> {
    LISTENING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(event: impl FnOnce() -> Event) {
    if let Some(listening) = &mut *listening() {
        listening.events.push(event());
    }
}

/// Whether a descriptor is the file's; with it, whether writes to it are safe at once.
fn file_of(fd: c_int) -> Option<bool> {
    let wanted = match &*listening() {
        Some(listening) => format!("{}/data.mdb", listening.folder),
        None => return None,
    };
    let is = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    if is != Path::new(&wanted) {
        return None;
    }
    // SAFETY: asks for the flags of a descriptor, and changes nothing.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    Some(flags & libc::O_DSYNC != 0)
}

fn wrote(fd: c_int, offset: u64, bytes: &[u8]) {
    if let Some(safe) = file_of(fd) {
        note(|| Event::Write { offset, bytes: bytes.to_vec(), safe });
    }
}

fn synced(fd: c_int) {
    if file_of(fd).is_some() {
        note(|| Event::Sync);
    }
}

/// # Safety
/// As the function of the C library.
unsafe fn write_at(fd: c_int, from: *const c_void, len: size_t, offset: off_t) -> ssize_t {
    // SAFETY: what the caller promises is what the kernel asks for.
    let done = unsafe { libc::syscall(libc::SYS_pwrite64, fd, from, len, offset) };
    if done > 0 {
        // SAFETY: the kernel has read so many bytes from there.
        let bytes =
            unsafe { std::slice::from_raw_parts(from.cast(), done.unsigned_abs() as usize) };
        wrote(fd, offset.unsigned_abs(), bytes);
    }
    done as ssize_t
}

/// # Safety
/// As the function of the C library.
unsafe fn write_all_at(fd: c_int, parts: *const iovec, count: c_int, mut offset: off_t) -> ssize_t {
    let mut all = 0;
    // SAFETY: there are `count` of them, as the caller promises.
    let parts = unsafe { std::slice::from_raw_parts(parts, count.unsigned_abs() as usize) };
    for part in parts {
        // SAFETY: each is what `write_at` asks for.
        let done = unsafe { write_at(fd, part.iov_base, part.iov_len, offset) };
        if done < 0 {
            return if all == 0 { done } else { all };
        }
        (all, offset) = (all + done, offset + done as off_t);
        if done.unsigned_abs() < part.iov_len {
            break;
        }
    }
    all
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(fd: c_int, from: *const c_void, len: size_t, at: off_t) -> ssize_t {
    // SAFETY: the same promise.
    unsafe { write_at(fd, from, len, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, len: size_t, at: off_t) -> ssize_t {
    // SAFETY: the same promise.
    unsafe { write_at(fd, from, len, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev(fd: c_int, parts: *const iovec, n: c_int, at: off_t) -> ssize_t {
    // SAFETY: the same promise.
    unsafe { write_all_at(fd, parts, n, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev64(fd: c_int, parts: *const iovec, n: c_int, at: off_t) -> ssize_t {
    // SAFETY: the same promise.
    unsafe { write_all_at(fd, parts, n, at) }
}

/// Writes where the last write ended, or where `lseek` went.
#[unsafe(no_mangle)]
unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    if file_of(fd).is_none() {
        // SAFETY: the same promise.
        return unsafe { libc::syscall(libc::SYS_writev, fd, parts, count) } as ssize_t;
    }
    // SAFETY: asks where the descriptor is.
    let at = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
    // SAFETY: the same promise.
    let done = unsafe { write_all_at(fd, parts, count, at) };
    if done > 0 {
        // SAFETY: moves the descriptor to where it would be.
        unsafe { libc::lseek(fd, at + done as off_t, libc::SEEK_SET) };
    }
    done
}

fn sync(call: c_long, fd: c_int) -> c_int {
    // SAFETY: a descriptor is all it takes.
    let done = unsafe { libc::syscall(call, fd) };
    if done == 0 {
        synced(fd);
    }
    done as c_int
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(libc::SYS_fdatasync, fd)
}

#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    sync(libc::SYS_fsync, fd)
}
