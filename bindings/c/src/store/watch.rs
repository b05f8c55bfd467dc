//! Watches: streams of committed changes.

use super::open::{OpenStore, OpenTable};
use super::types::{
    nuthatch_store, nuthatch_store_range, nuthatch_store_table, nuthatch_store_watch, range_of,
};
use crate::error::{Failure, Result, nuthatch_error};
use crate::handles::{self, HandleObject};
use crate::memory::{RawPointers, export_body};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use store_engine::{BatchStream, Change, Error, Operation, Start};

/// A watch that begins with the next committed change.
pub const NUTHATCH_STORE_FROM_NOW: u32 = 0;
/// A watch that begins after the change with the number `sequence`.
pub const NUTHATCH_STORE_AFTER: u32 = 1;
/// A watch that begins with the oldest kept change.
pub const NUTHATCH_STORE_FROM_OLDEST: u32 = 2;

/// Kind of a change: the key has a new value.
pub const NUTHATCH_STORE_CHANGED_PUT: u32 = 1;
/// Kind of a change: the key was deleted.
pub const NUTHATCH_STORE_CHANGED_DELETE: u32 = 2;
/// Kind of a change: the key expired and was removed from the table.
pub const NUTHATCH_STORE_CHANGED_EXPIRE: u32 = 3;

/// A committed change.
#[repr(C)]
pub struct nuthatch_store_change {
    /// The number of the change, greater than the numbers of all earlier changes.
    pub sequence: u64,
    /// The number of the transaction that committed the change.
    pub transaction: u64,
    /// Time of expiry of the value in milliseconds since 1970; 0: never.
    pub expires_at_ms: u64,
    /// The name of the table in UTF-8, without a zero byte. Empty for the main table.
    pub table: *const u8,
    /// The key.
    pub key: *const u8,
    /// The new value. Empty unless the change is a put.
    pub value: *const u8,
    /// Length of the table name in bytes.
    pub table_len: u32,
    /// Length of the key in bytes.
    pub key_len: u32,
    /// Length of the value in bytes.
    pub value_len: u64,
    /// The kind of the change: `NUTHATCH_STORE_CHANGED_PUT`, `_DELETE` or `_EXPIRE`.
    pub operation: u32,
    /// Always 0.
    pub reserved: u32,
}

/// The object of a watch's handle.
pub(crate) struct OpenWatch {
    watching: Mutex<Watching>,
    bell: Arc<Bell>,
    _guest: Arc<()>,
}

impl HandleObject for OpenWatch {
    const KIND: &str = "a watch";
}

struct Watching {
    stream: BatchStream<Vec<Change>>,
    /// The changes to which C has pointers.
    changes: Vec<Change>,
    raw: RawPointers<nuthatch_store_change>,
}

/// Signals a waiting thread that there may be changes, or that the watch was stopped.
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

    /// Waits until the bell has rung since the last call. Returns false after the deadline.
    fn wait(&self, deadline: Option<Instant>) -> Result<bool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.stopped {
                return Err(Error::Closed.into());
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
            operation: match change.operation {
                Operation::Put => NUTHATCH_STORE_CHANGED_PUT,
                Operation::Delete => NUTHATCH_STORE_CHANGED_DELETE,
                Operation::Expire => NUTHATCH_STORE_CHANGED_EXPIRE,
            },
            reserved: 0,
        };
        self.raw = RawPointers(self.changes.iter().map(raw).collect());
    }
}

/// Opens a watch of changes to the keys of a range, in one table, or in all tables if `table` is 0.
/// `range` may be null: all keys. `start` is `NUTHATCH_STORE_FROM_NOW`, `_AFTER` or `_FROM_OLDEST`;
/// `sequence` is used with `_AFTER` only. The store must keep changes
/// (`nuthatch_store_keep_changes`). Returns the handle in `watch`.
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
    export_body!(error, |caller| {
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
        let watching = Watching { stream, changes: Vec::new(), raw: RawPointers(Vec::new()) };
        let watching = Mutex::new(watching);
        let (bell, guest) = (Arc::default(), Arc::clone(&open.guests));
        out.put(handles::create(OpenWatch { watching, bell, _guest: guest }));
        Ok(())
    })
}

/// Waits up to `timeout_ms` for changes. Returns a pointer to an array in `changes`, and its length
/// in `count`, which is 0 after a timeout. The pointers are valid until the next call for this
/// watch, or until the watch is closed. Fails with `closed` if the watch was stopped or its store
/// was closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_watch_next(
    watch: nuthatch_store_watch,
    timeout_ms: u64,
    changes: *mut *const nuthatch_store_change,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
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
                Poll::Ready(None) => return Err(Error::Closed.into()),
                Poll::Pending if open.bell.wait(deadline)? => continue,
                Poll::Pending => watching.keep(Vec::new()),
            }
            out.put(watching.raw.0.as_ptr());
            many.put(watching.raw.0.len());
            return Ok(());
        }
    })
}

/// Stops a watch: a thread that waits for changes returns with `closed`. Any thread may call this;
/// the thread that reads the changes then closes the watch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_stop_watch(
    watch: nuthatch_store_watch,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| {
        handles::find::<OpenWatch>(watch)?.bell.ring(true);
        Ok(())
    })
}

/// Closes a watch. All pointers that it returned become invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_close_watch(
    watch: nuthatch_store_watch,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| {
        handles::close::<OpenWatch>(watch)?.bell.ring(true);
        Ok(())
    })
}
