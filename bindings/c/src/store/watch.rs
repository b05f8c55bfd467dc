//! Watches: committed changes, which one thread waits for.

use super::open::{OpenStore, OpenTable};
use super::types::{
    nuthatch_store, nuthatch_store_range, nuthatch_store_table, nuthatch_store_watch, range_of,
};
use crate::error::{Failure, Result, nuthatch_error};
use crate::handles;
use crate::memory::{Caller, Lent, call};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use store_engine::{Act, BatchStream, Change, Start};

/// A watch of the next change that is committed.
pub const NUTHATCH_STORE_FROM_NOW: u32 = 0;
/// A watch of the changes after the one of a number.
pub const NUTHATCH_STORE_AFTER: u32 = 1;
/// A watch of all changes that are kept.
pub const NUTHATCH_STORE_FROM_OLDEST: u32 = 2;

/// The key has a new value.
pub const NUTHATCH_STORE_CHANGED_PUT: u32 = 1;
/// The key was deleted.
pub const NUTHATCH_STORE_CHANGED_DELETE: u32 = 2;
/// The key expired, and was taken out of the table.
pub const NUTHATCH_STORE_CHANGED_EXPIRE: u32 = 3;

/// A committed change.
#[repr(C)]
pub struct nuthatch_store_change {
    /// Its number: greater than those of all changes before it.
    pub sequence: u64,
    /// The transaction it belongs to.
    pub transaction: u64,
    /// When the value expires, in milliseconds since the beginning of 1970; 0 for never.
    pub expires_at_ms: u64,
    /// The name of the table, in UTF-8 without a zero byte; of no bytes for the main table.
    pub table: *const u8,
    /// The key.
    pub key: *const u8,
    /// The new value.
    pub value: *const u8,
    /// Bytes of the name.
    pub table_len: u32,
    /// Bytes of the key.
    pub key_len: u32,
    /// Bytes of the value.
    pub value_len: u64,
    /// `NUTHATCH_STORE_CHANGED_PUT`, `_DELETE` or `_EXPIRE`.
    pub act: u32,
    /// 0.
    pub reserved: u32,
}

/// What is behind the handle of a watch.
pub(crate) struct OpenWatch {
    watching: Mutex<Watching>,
    bell: Arc<Bell>,
    _guest: Arc<()>,
}

struct Watching {
    stream: BatchStream<Vec<Change>>,
    /// What C has, and where it lies.
    changes: Vec<Change>,
    raw: Lent<nuthatch_store_change>,
}

/// Rings when there may be changes, or nobody wants any.
#[derive(Default)]
struct Bell {
    state: Mutex<Rung>,
    rang: Condvar,
}

#[derive(Default)]
struct Rung {
    rung: bool,
    stopped: bool,
}

impl Bell {
    fn ring(&self, stop: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.rung = true;
        state.stopped |= stop;
        drop(state);
        self.rang.notify_all();
    }

    /// Waits until it has rung since the last time. Whether it has by then.
    fn wait(&self, deadline: Option<Instant>) -> Result<bool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.stopped {
                return Err(Failure::closed());
            }
            if std::mem::take(&mut state.rung) {
                return Ok(true);
            }
            let left = deadline.map_or(Duration::from_hours(1), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.rang.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring(false);
    }
}

impl Watching {
    fn keep(&mut self, changes: Vec<Change>) {
        self.changes = changes;
        let raw = |change: &Change| nuthatch_store_change {
            sequence: change.sequence,
            transaction: change.transaction,
            expires_at_ms: change.expires_at_ms.unwrap_or(0),
            table: change.table.as_ptr(),
            key: change.key.as_ptr(),
            value: change.value.as_ptr(),
            table_len: change.table.len() as u32,
            key_len: change.key.len() as u32,
            value_len: change.value.len() as u64,
            act: match change.act {
                Act::Put => NUTHATCH_STORE_CHANGED_PUT,
                Act::Delete => NUTHATCH_STORE_CHANGED_DELETE,
                Act::Expire => NUTHATCH_STORE_CHANGED_EXPIRE,
            },
            reserved: 0,
        };
        self.raw = Lent(self.changes.iter().map(raw).collect());
    }
}

/// Opens a watch of the changes of keys of a range, of one table, or of all where `table` is 0.
/// `range` may be null, for all keys. `start` is `NUTHATCH_STORE_FROM_NOW`, `_AFTER`, with the
/// number `sequence`, or `_FROM_OLDEST`. The store must keep changes. Answers its handle through
/// `watch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_open_watch(
    store: nuthatch_store,
    table: nuthatch_store_table,
    range: *const nuthatch_store_range,
    start: u32,
    sequence: u64,
    watch: *mut nuthatch_store_watch,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let mut out = caller.out("watch", watch)?;
        let range = range_of(caller, range)?;
        let start = match start {
            NUTHATCH_STORE_FROM_NOW => Start::Now,
            NUTHATCH_STORE_AFTER => Start::After(sequence),
            NUTHATCH_STORE_FROM_OLDEST => Start::Oldest,
            found => return Err(Failure::argument("start", "where a watch can begin", found)),
        };
        let open = OpenStore::find(store)?;
        let of_table = if table == 0 { None } else { Some(OpenTable::find(table)?) };
        let of_table = of_table.as_ref().map(|table| table.within(store)).transpose()?;
        let stream = open.store.watch(of_table, range, start)?.into_stream();
        let watching = Watching { stream, changes: Vec::new(), raw: Lent(Vec::new()) };
        let watching = Mutex::new(watching);
        let (bell, guest) = (Arc::default(), Arc::clone(&open.guests));
        out.put(handles::hold(OpenWatch { watching, bell, _guest: guest }));
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Waits for changes, so long at most. Where the first lies is answered through `changes`, and how
/// many follow one another there through `count`, which is 0 when none came. They can be read until
/// the next call for this watch, or until it is closed. Fails with `closed` when it was stopped, or
/// its store closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_watch_next(
    watch: nuthatch_store_watch,
    timeout_ms: u64,
    changes: *mut *const nuthatch_store_change,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |caller: &Caller<'_>| {
        let (mut out, mut many) = (caller.out("changes", changes)?, caller.out("count", count)?);
        let open = handles::find::<OpenWatch>(watch)?;
        let deadline = Instant::now().checked_add(Duration::from_millis(timeout_ms));
        let waker = Waker::from(Arc::clone(&open.bell));
        let mut watching = open.watching.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let polled = Pin::new(&mut watching.stream).poll_next(&mut Context::from_waker(&waker));
            match polled {
                Poll::Ready(Some(Ok(changes))) => watching.keep(changes),
                Poll::Ready(Some(Err(error))) => return Err(error.into()),
                Poll::Ready(None) => return Err(Failure::closed()),
                Poll::Pending if open.bell.wait(deadline)? => continue,
                Poll::Pending => watching.keep(Vec::new()),
            }
            out.put(watching.raw.0.as_ptr());
            many.put(watching.raw.0.len());
            return Ok(());
        }
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Stops a watch: whoever waits for changes returns with `closed`. For threads other than the one
/// that reads its changes, which closes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_stop_watch(
    watch: nuthatch_store_watch,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |_: &Caller<'_>| {
        handles::find::<OpenWatch>(watch)?.bell.ring(true);
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}

/// Closes a watch. Nothing that it lent may be read from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_close_watch(
    watch: nuthatch_store_watch,
    error: *mut nuthatch_error,
) -> i32 {
    let act = |_: &Caller<'_>| {
        handles::close::<OpenWatch>(watch)?.bell.ring(true);
        Ok(())
    };
    // SAFETY: the caller keeps the conventions of the header.
    unsafe { call(error, act) }
}
