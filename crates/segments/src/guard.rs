//! What happens when a page of a mapped file vanishes because somebody cut the file off.
//!
//! The system then sends `SIGBUS` to the thread that touches the page. The handler here puts pages
//! of zeros where the rest of the file was, marks the map as lost and lets the thread go on;
//! whoever reads a map asks afterwards whether it was lost. A fault anywhere else goes to the
//! handler that was there before.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maps that can be watched at once, in a process.
const MOST: usize = 4096;
/// The start of an entry that somebody fills in.
const TAKEN: usize = 1;

struct Entry {
    /// The address; zero for nobody's.
    start: AtomicUsize,
    len: AtomicUsize,
    lost: AtomicBool,
}

static ENTRIES: [Entry; MOST] = [const {
    Entry { start: AtomicUsize::new(0), len: AtomicUsize::new(0), lost: AtomicBool::new(false) }
}; MOST];
/// Entries from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// A map that is watched until this is dropped.
pub(crate) struct Watch(Option<&'static Entry>);

impl Watch {
    /// Watches a map. `None` if the handler cannot be installed, or too many are watched.
    pub(crate) fn over(start: usize, len: usize) -> Option<Self> {
        install().then_some(())?;
        for (number, entry) in ENTRIES.iter().enumerate() {
            let free = entry.start.load(Ordering::Relaxed) == 0;
            let order = Ordering::AcqRel;
            if free && entry.start.compare_exchange(0, TAKEN, order, Ordering::Relaxed).is_ok() {
                entry.len.store(len, Ordering::Relaxed);
                entry.lost.store(false, Ordering::Relaxed);
                USED.fetch_max(number + 1, Ordering::Release);
                entry.start.store(start, Ordering::Release);
                return Some(Self(Some(entry)));
            }
        }
        None
    }

    /// Watches nothing.
    pub(crate) fn nothing() -> Self {
        Self(None)
    }

    /// Whether a page of the map vanished.
    #[inline]
    pub(crate) fn lost(&self) -> bool {
        self.0.is_some_and(|entry| entry.lost.load(Ordering::Acquire))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(entry) = self.0 {
            entry.start.store(0, Ordering::Release);
        }
    }
}

/// Installs the handler, once in a process. Whether it is there.
fn install() -> bool {
    BEFORE
        .get_or_init(|| {
            // SAFETY: a `sigaction` of zeros is one: no handler, no flags, no signals.
            let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
            new.sa_sigaction = handle as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: both live during the call; the handler has the signature that its flags ask
            // for.
            let status = unsafe { libc::sigaction(libc::SIGBUS, &raw const new, &raw mut old) };
            (status == 0).then_some(old)
        })
        .is_some()
}

/// Handles the signal. Does only what may be done in a handler: atomics and system calls.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands the description of the signal to a handler with `SA_SIGINFO`.
    let info_read = unsafe { &*info };
    // SAFETY: a `SIGBUS` has an address.
    let address = unsafe { info_read.si_addr() } as usize;
    let used = USED.load(Ordering::Acquire).min(MOST);
    for entry in &ENTRIES[..used] {
        let start = entry.start.load(Ordering::Acquire);
        let len = entry.len.load(Ordering::Relaxed);
        if start > TAKEN && address >= start && address - start < len {
            entry.lost.store(true, Ordering::Release);
            if blank(address & !4095, start + len) {
                return;
            }
        }
    }
    hand_on(signal, info, context);
}

/// Puts pages of zeros from an address to the end of a map.
fn blank(from: usize, end: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the pages belong to a map of this crate, which is watched and so is not unmapped;
    // they vanished, so nobody's bytes are lost by it.
    let at = unsafe { libc::mmap(from as *mut c_void, end - from, access, flags, -1, 0) };
    at != libc::MAP_FAILED
}

/// Does with a signal what would have been done without this handler.
fn hand_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get().and_then(Option::as_ref);
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // The instruction is tried again when this returns, and then ends the process.
        // SAFETY: the handler that every process begins with.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    let flags = before.map_or(0, |before| before.sa_flags);
    if flags & libc::SA_SIGINFO == 0 {
        type Short = extern "C" fn(c_int);
        #[expect(clippy::disallowed_methods, reason = "the system keeps handlers as numbers")]
        // SAFETY: the system had it as the handler, with flags that say it takes one argument.
        let handler = unsafe { std::mem::transmute::<usize, Short>(handler) };
        handler(signal);
    } else {
        type Long = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
        #[expect(clippy::disallowed_methods, reason = "the system keeps handlers as numbers")]
        // SAFETY: the system had it as the handler, with flags that say it takes three arguments.
        let handler = unsafe { std::mem::transmute::<usize, Long>(handler) };
        handler(signal, info, context);
    }
}
