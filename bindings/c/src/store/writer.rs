//! Writers: commit batches of many threads in groups. Each batch has its own acknowledgement.
//!
//! Submitting does not wait for the disk. One thread takes the acknowledgements of all batches.

use super::failure::error_to_c;
use super::open::OpenStore;
use super::types::{durability_of, nuthatch_store, nuthatch_store_writer};
use super::write::{batch_of, nuthatch_store_write, nuthatch_store_written};
use crate::error::{Failure, Result, nuthatch_error};
use crate::handles::{self, HandleObject};
use crate::memory::export_body;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use store_engine::{Ack, BatchOptions, BatchWriter, Error, Failure as OnFailure, Written};

/// Options of a writer. The usual options are all zero.
#[repr(C)]
pub struct nuthatch_store_writer_options {
    /// Maximum number of batches in a transaction; 0: 4096.
    pub group_batches: u32,
    /// Durability of commits: `NUTHATCH_STORE_SYNC`, `_GROUP` or `_NO_SYNC`.
    pub durability: u32,
    /// Maximum number of bytes in a transaction; 0: 16 MiB. A longer batch has its own
    /// transaction.
    pub group_bytes: u64,
    /// Maximum number of bytes in the queue; 0: 64 MiB. While it is full, submitting waits.
    pub queue_bytes: u64,
    /// How long a group waits for more batches, in milliseconds; 0: not at all.
    pub linger_ms: u32,
    /// 1: if a batch of a group fails, all batches of the group fail. 0: the others are committed.
    pub fail_together: u32,
}

/// The acknowledgement of a batch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_store_ack {
    /// The `tag` with which the batch was submitted.
    pub tag: u64,
    /// Where the batch was committed. Written only if `error.code` is 0.
    pub written: nuthatch_store_written,
    /// Why the batch was not committed. If it was committed, `code` is 0 and the other fields are
    /// not written.
    pub error: nuthatch_error,
}

/// The object of a writer's handle.
pub(crate) struct OpenWriter {
    /// `None` after the writer was finished.
    writer: Mutex<Option<BatchWriter>>,
    /// Whether the error of a batch names the group with which it failed, and not only the cause.
    fails_together: bool,
    answers: Arc<Answers>,
}

impl HandleObject for OpenWriter {
    const KIND: &str = "a writer";
}

/// Acknowledgements that were not taken yet.
#[derive(Default)]
struct Answers {
    state: Mutex<Waiting>,
    came: Condvar,
}

#[derive(Default)]
struct Waiting {
    answers: VecDeque<(u64, store_engine::Result<Written>)>,
    finished: bool,
}

/// A batch that is not acknowledged yet.
struct Pending {
    tag: u64,
    ack: Mutex<Option<Ack>>,
    answers: Arc<Answers>,
}

impl Answers {
    /// Waits at most `ms` milliseconds for acknowledgements and takes at most `max` of them. Fails
    /// if the writer was finished and all were taken.
    fn take(&self, ms: u64, max: usize) -> Result<Vec<(u64, store_engine::Result<Written>)>> {
        let deadline = Instant::now().checked_add(Duration::from_millis(ms));
        let mut state = self.lock();
        while state.answers.is_empty() {
            if state.finished {
                return Err(Error::Closed.into());
            }
            let left = deadline.map_or(Duration::from_hours(1), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                break;
            }
            let waited = self.came.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let many = state.answers.len().min(max);
        Ok(state.answers.drain(..many).collect())
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A panic leaves the state valid: each statement does.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Takes the acknowledgement if it is ready; otherwise registers itself as the waker.
    fn look(self: &Arc<Self>) {
        let mut ack = self.ack.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = ack.as_mut() else { return };
        let waker = Waker::from(Arc::clone(self));
        let polled = Pin::new(waiting).poll(&mut Context::from_waker(&waker));
        if let Poll::Ready(answer) = polled {
            *ack = None;
            drop(ack);
            self.answers.lock().answers.push_back((self.tag, answer));
            self.answers.came.notify_one();
        }
    }
}

impl Wake for Pending {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

impl OpenWriter {
    fn find(handle: u64) -> Result<Arc<Self>> {
        handles::find(handle)
    }

    /// Fails in a child made by `fork` if the parent started the writer. Its acknowledgements never
    /// arrive in the child, and may stay locked there.
    fn check_process(&self) -> Result<()> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(writer.as_ref().map_or(Ok(()), BatchWriter::check_process)?)
    }

    fn writer(&self) -> Result<BatchWriter> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.clone().ok_or_else(|| Error::Closed.into())
    }
}

fn options_of(options: &nuthatch_store_writer_options) -> Result<BatchOptions> {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut made = BatchOptions::new()
        .durability(durability_of(options.durability)?)
        .linger(Duration::from_millis(options.linger_ms.into()));
    if options.fail_together != 0 {
        made = made.failure(OnFailure::Group);
    }
    if options.group_batches != 0 {
        made = made.group_batches(options.group_batches as usize);
    }
    if options.group_bytes != 0 {
        made = made.group_bytes(bytes(options.group_bytes));
    }
    if options.queue_bytes != 0 {
        made = made.queue_bytes(bytes(options.queue_bytes));
    }
    Ok(made)
}

/// Starts a writer: a thread that commits the batches of many threads in groups. `options` may be
/// null. Returns the handle in `writer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_open_writer(
    store: nuthatch_store,
    options: *const nuthatch_store_writer_options,
    writer: *mut nuthatch_store_writer,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("writer", writer)?;
        let options = caller.maybe("options", options)?;
        let made = options.map_or_else(|| Ok(BatchOptions::new()), options_of)?;
        let fails_together = options.is_some_and(|options| options.fail_together != 0);
        let open = OpenStore::find(store)?;
        let writer = Mutex::new(Some(open.store.batch_writer(&made)?));
        let answers = Arc::default();
        out.put(handles::create(OpenWriter { writer, fails_together, answers }));
        Ok(())
    })
}

/// Submits a batch: writes that are executed in order and committed together or not at all. Copies
/// them, and waits while the queue is full. If the call returns 0, an acknowledgement with `tag`
/// follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_submit(
    writer: nuthatch_store_writer,
    batch: *const nuthatch_store_write,
    count: usize,
    tag: u64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let batch = batch_of(caller, batch, count)?;
        let open = OpenWriter::find(writer)?;
        let ack = Mutex::new(Some(open.writer()?.submit(batch)?));
        Arc::new(Pending { tag, ack, answers: Arc::clone(&open.answers) }).look();
        Ok(())
    })
}

/// Waits up to `timeout_ms` for acknowledgements and returns those that have arrived, at most
/// `capacity`, in `acks`, in the order of the commits. Returns their number in `count`, which is 0
/// after a timeout. Fails with `closed` if the writer was finished and all acknowledgements were
/// taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_take_acks(
    writer: nuthatch_store_writer,
    timeout_ms: u64,
    acks: *mut nuthatch_store_ack,
    capacity: usize,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("count", count)?;
        let room = caller.room("acks", acks, capacity)?;
        if room.is_empty() {
            return Err(Failure::argument("capacity", "room for one or more", 0));
        }
        let open = OpenWriter::find(writer)?;
        open.check_process()?;
        let taken = open.answers.take(timeout_ms, room.len())?;
        out.put(taken.len());
        for (ack, (tag, answer)) in room.iter_mut().zip(taken) {
            ack.tag = tag;
            ack.error.code = 0;
            match answer {
                Ok(written) => ack.written = nuthatch_store_written::of(written),
                Err(Error::Group(cause)) if !open.fails_together => {
                    ack.error = error_to_c(&cause);
                }
                Err(error) => ack.error = error_to_c(&error),
            }
        }
        Ok(())
    })
}

/// Finishes a writer: it accepts no more batches. Returns when all submitted batches are
/// acknowledged. The acknowledgements can still be taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_finish_writer(
    writer: nuthatch_store_writer,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| {
        let open = OpenWriter::find(writer)?;
        open.check_process()?;
        let taken = open.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A thread that submits at this moment has its own clone of the writer.
        if let Some(writer) = taken {
            // If this fails, so did earlier batches, and these are acknowledged with their errors.
            let _ = writer.flush();
        }
        open.answers.lock().finished = true;
        open.answers.came.notify_all();
        Ok(())
    })
}

/// Closes a writer without waiting. Submitted batches are written, and their acknowledgements are
/// discarded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_store_close_writer(
    writer: nuthatch_store_writer,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |_| handles::close::<OpenWriter>(writer).map(drop))
}
