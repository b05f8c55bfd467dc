//! Keeps a process alive when a file that it has mapped is truncated or cannot be read.
//!
//! The kernel sends `SIGBUS` to a thread that accesses a mapped page which is beyond the end of the
//! file, or which the device cannot read. By default the signal ends the process.
//! [`MapGuard::register`] installs a signal handler, once in a process. For a fault inside a
//! registered map, the handler replaces all pages from the faulting one to the end of the map by
//! zeros, marks the map as lost, and lets the thread continue. It passes any other fault to the
//! handler that was installed before.
//!
//! So a reader of a registered map does not crash, but it may read zeros: it must call
//! [`MapGuard::is_lost`] after it has read bytes and before it uses them. A lost map stays lost:
//! map the file again to read it.
//!
//! The handler uses only atomics, `mmap` and `signal`, which are safe in a signal handler on Linux.
//! A program that installs its own `SIGBUS` handler afterwards replaces this one, unless its
//! handler calls the previous one.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maximum number of maps that a process can have registered at a time.
pub const MAX_MAPS: usize = 4096;

/// The value of `Entry::start` while an entry is being filled in.
const RESERVED: usize = 1;

#[derive(Debug)]
struct Entry {
    /// The address of the map; zero if the entry is free.
    start: AtomicUsize,
    len: AtomicUsize,
    lost: AtomicBool,
}

static ENTRIES: [Entry; MAX_MAPS] = [const {
    Entry { start: AtomicUsize::new(0), len: AtomicUsize::new(0), lost: AtomicBool::new(false) }
}; MAX_MAPS];
/// Entries from this index on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Whether any map of this process was lost.
static ANY_LOST: AtomicBool = AtomicBool::new(false);
static PREVIOUS_HANDLER: OnceLock<Option<libc::sigaction>> = OnceLock::new();
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(4096);

/// The registration of a map. Dropping it ends the registration.
///
/// Drop it before the map is unmapped: a struct with both declares the guard first.
#[derive(Debug)]
pub struct MapGuard(&'static Entry);

impl MapGuard {
    /// Registers a map of `len` bytes that begins at the page-aligned address `start`.
    ///
    /// Returns `None` if the signal handler cannot be installed, or if [`MAX_MAPS`] maps are
    /// registered already.
    ///
    /// # Safety
    ///
    /// - The range is mapped from a file until the guard is dropped: the handler maps anonymous
    ///   pages over it.
    /// - All code that reads the range tolerates that its bytes become zero at any time.
    pub unsafe fn register(start: *const u8, len: usize) -> Option<Self> {
        install().then_some(())?;
        for (number, entry) in ENTRIES.iter().enumerate() {
            let free = entry.start.load(Ordering::Relaxed) == 0;
            let order = Ordering::AcqRel;
            if free && entry.start.compare_exchange(0, RESERVED, order, Ordering::Relaxed).is_ok() {
                entry.len.store(len, Ordering::Relaxed);
                entry.lost.store(false, Ordering::Relaxed);
                USED.fetch_max(number + 1, Ordering::Release);
                entry.start.store(start as usize, Ordering::Release);
                return Some(Self(entry));
            }
        }
        None
    }

    /// Returns whether a page of the map could not be read. If it returns `false`, all bytes that
    /// this thread read before the call are those of the file.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }
}

impl Drop for MapGuard {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
    }
}

/// Returns whether any map of this process was lost since it began. While this returns `false`, no
/// [`MapGuard::is_lost`] returns true, so a program with many maps need not call each.
#[inline]
pub fn is_any_lost() -> bool {
    ANY_LOST.load(Ordering::Acquire)
}

/// Installs the handler at the first call. Returns whether it is installed.
fn install() -> bool {
    PREVIOUS_HANDLER
        .get_or_init(|| {
            // SAFETY: the call takes a number and returns one.
            let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            PAGE_SIZE.store(usize::try_from(page_size).unwrap_or(4096), Ordering::Relaxed);
            // SAFETY: a `sigaction` of zeros is valid: no handler, no flags, no signals.
            let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
            new.sa_sigaction = handle as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: both structs live during the call; the handler has the signature that
            // `SA_SIGINFO` requires.
            let status = unsafe { libc::sigaction(libc::SIGBUS, &raw const new, &raw mut old) };
            (status == 0).then_some(old)
        })
        .is_some()
}

/// Handles `SIGBUS`.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler with `SA_SIGINFO`.
    let info_read = unsafe { &*info };
    // SAFETY: the `siginfo_t` of a `SIGBUS` has an address.
    let address = unsafe { info_read.si_addr() } as usize;
    let used = USED.load(Ordering::Acquire).min(MAX_MAPS);
    for entry in &ENTRIES[..used] {
        let start = entry.start.load(Ordering::Acquire);
        let len = entry.len.load(Ordering::Relaxed);
        if start > RESERVED && address >= start && address - start < len {
            entry.lost.store(true, Ordering::Release);
            ANY_LOST.store(true, Ordering::Release);
            let page_size = PAGE_SIZE.load(Ordering::Relaxed);
            if replace_by_zeros(address & !(page_size - 1), start + len) {
                return;
            }
        }
    }
    call_previous(signal, info, context);
}

/// Maps pages of zeros over the addresses from `from` to `end`. Returns whether it succeeded.
fn replace_by_zeros(from: usize, end: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the pages belong to a registered map, which stays mapped while it is registered.
    let at = unsafe { libc::mmap(from as *mut c_void, end - from, access, flags, -1, 0) };
    at != libc::MAP_FAILED
}

/// Calls the handler that was installed before this one; if there is none, restores the default
/// action.
fn call_previous(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = PREVIOUS_HANDLER.get().and_then(Option::as_ref);
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // When this handler returns, the instruction faults again and ends the process.
        // SAFETY: the default handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    let flags = previous.map_or(0, |previous| previous.sa_flags);
    if flags & libc::SA_SIGINFO == 0 {
        type Short = extern "C" fn(c_int);
        #[expect(clippy::disallowed_methods, reason = "the kernel keeps handlers as numbers")]
        // SAFETY: `sigaction` returned it as the previous handler, without `SA_SIGINFO`: it takes
        // one argument.
        let handler = unsafe { std::mem::transmute::<usize, Short>(handler) };
        handler(signal);
    } else {
        type Long = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
        #[expect(clippy::disallowed_methods, reason = "the kernel keeps handlers as numbers")]
        // SAFETY: `sigaction` returned it as the previous handler, with `SA_SIGINFO`: it takes
        // three arguments.
        let handler = unsafe { std::mem::transmute::<usize, Long>(handler) };
        handler(signal, info, context);
    }
}
