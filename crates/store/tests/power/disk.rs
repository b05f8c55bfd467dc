//! Records the writes and syncs of one file. This file has unsafe code: in this test program it
//! replaces the functions of the C library with which LMDB writes. Each replacement makes the same
//! system call, and records it if it concerns the file.

use libc::{c_int, c_long, c_void, iovec, off_t, size_t, ssize_t};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event of the recorded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Bytes were written. They are durable at once only if the file was opened with `O_DSYNC`.
    Write { offset: u64, bytes: Vec<u8>, durable: bool },
    /// The file was synced: all earlier bytes are durable.
    Sync,
    /// The test recorded its progress.
    Progress(usize),
}

/// The folder of the recorded file, and its events.
struct Recording {
    folder: String,
    events: Vec<Event>,
}

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);
/// One test records at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Records the events of `data.mdb` in a folder until `stop`.
pub(crate) struct Recorder(MutexGuard<'static, ()>);

impl Recorder {
    pub(crate) fn start(folder: &Path) -> Self {
        let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = folder.to_str().expect("a name in UTF-8").to_owned();
        *recording() = Some(Recording { folder, events: Vec::new() });
        Self(guard)
    }

    pub(crate) fn stop(self) -> Vec<Event> {
        let events = recording().take().expect("a recording").events;
        drop(self.0);
        events
    }
}

/// Records the test's progress, after all earlier events of the file.
pub(crate) fn record_progress(what: usize) {
    record(|| Event::Progress(what));
}

fn recording() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record(event: impl FnOnce() -> Event) {
    if let Some(recording) = &mut *recording() {
        recording.events.push(event());
    }
}

/// Returns whether writes to a descriptor are durable at once; `None` if it is not the recorded
/// file.
fn file_of(fd: c_int) -> Option<bool> {
    let wanted = match &*recording() {
        Some(recording) => format!("{}/data.mdb", recording.folder),
        None => return None,
    };
    let is = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    if is != Path::new(&wanted) {
        return None;
    }
    // SAFETY: the call returns the flags of a descriptor, and changes nothing.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    Some(flags & libc::O_DSYNC != 0)
}

fn wrote(fd: c_int, offset: u64, bytes: &[u8]) {
    if let Some(durable) = file_of(fd) {
        record(|| Event::Write { offset, bytes: bytes.to_vec(), durable });
    }
}

fn synced(fd: c_int) {
    if file_of(fd).is_some() {
        record(|| Event::Sync);
    }
}

/// # Safety
/// As the function of the C library.
unsafe fn write_at(fd: c_int, from: *const c_void, len: size_t, offset: off_t) -> ssize_t {
    // SAFETY: the caller ensures what the system call requires.
    let done = unsafe { libc::syscall(libc::SYS_pwrite64, fd, from, len, offset) };
    if done > 0 {
        // SAFETY: the kernel has read `done` bytes from this address.
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
    // SAFETY: the caller ensures that there are `count` parts.
    let parts = unsafe { std::slice::from_raw_parts(parts, count.unsigned_abs() as usize) };
    for part in parts {
        // SAFETY: each part is valid for `write_at`.
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
    // SAFETY: the caller ensures the same.
    unsafe { write_at(fd, from, len, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, len: size_t, at: off_t) -> ssize_t {
    // SAFETY: the caller ensures the same.
    unsafe { write_at(fd, from, len, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev(fd: c_int, parts: *const iovec, n: c_int, at: off_t) -> ssize_t {
    // SAFETY: the caller ensures the same.
    unsafe { write_all_at(fd, parts, n, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwritev64(fd: c_int, parts: *const iovec, n: c_int, at: off_t) -> ssize_t {
    // SAFETY: the caller ensures the same.
    unsafe { write_all_at(fd, parts, n, at) }
}

/// Writes at the file offset, and advances it.
#[unsafe(no_mangle)]
unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    if file_of(fd).is_none() {
        // SAFETY: the caller ensures the same.
        return unsafe { libc::syscall(libc::SYS_writev, fd, parts, count) } as ssize_t;
    }
    // SAFETY: the call returns the file offset, and changes nothing.
    let at = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
    // SAFETY: the caller ensures the same.
    let done = unsafe { write_all_at(fd, parts, count, at) };
    if done > 0 {
        // SAFETY: the call sets the file offset, as `writev` would have done.
        unsafe { libc::lseek(fd, at + done as off_t, libc::SEEK_SET) };
    }
    done
}

fn sync(call: c_long, fd: c_int) -> c_int {
    // SAFETY: the call takes only a descriptor.
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
