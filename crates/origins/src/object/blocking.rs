//! Objects for threads that may block.

use crate::counts::Count;
use crate::error::Result;
use crate::object::ChunkedObject;
use crate::object::cursor::Cursor;
use crate::reading::found;
use crate::reading::version::Version;
use std::future::{Future, poll_fn};
use std::io::{self, Read, Seek, SeekFrom};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use tokio::io::ReadBuf;

impl ChunkedObject {
    /// Returns the same object for threads that may block, positioned at its start.
    #[must_use]
    pub fn blocking(&self) -> BlockingObject {
        BlockingObject::new(self.version.clone())
    }
}

/// An object that is read through the cache by threads that may block. It is like a
/// [`ChunkedObject`], but the calling thread reads the cache itself. Must not be used on a thread
/// of an executor.
#[derive(Clone, Debug)]
pub struct BlockingObject {
    object: ChunkedObject,
}

impl BlockingObject {
    pub(crate) fn new(version: Arc<Version>) -> Self {
        Self { object: ChunkedObject { version, cursor: Cursor::new(true) } }
    }

    /// Returns the object, which has its length, address, validator and counts.
    pub fn object(&self) -> &ChunkedObject {
        &self.object
    }

    /// Reads like [`ChunkedObject::read_at`]. Bytes in the cache are read directly into the buffer.
    ///
    /// # Errors
    ///
    /// As [`ChunkedObject::read_at`].
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let version = &self.object.version;
        let range = version.within(offset, out.len());
        let len = (range.end - range.start) as usize;
        if let Some(cached) = version.cached().filter(|_| len > 0)
            && let Some(blocks) = version.blocks(cached.tasks.chunks(), cached)
            && found(blocks.get_into(range.clone(), &mut out[..len])).is_some()
        {
            let count = version.source_of(cached, &range, Count::FromCache);
            version.count(count, len as u64);
            return Ok(len);
        }
        let mut reader = self.object.demanded(range, true)?;
        let mut filled = 0;
        while let Some(bytes) = wait(poll_fn(|context| reader.poll_next(context))) {
            let bytes = bytes?;
            out[filled..filled + bytes.len()].copy_from_slice(&bytes);
            filled += bytes.len();
        }
        Ok(filled)
    }
}

impl Read for BlockingObject {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let ChunkedObject { version, cursor } = &mut self.object;
        let mut out = ReadBuf::new(out);
        wait(poll_fn(|context| cursor.poll_read(version, context, &mut out)))?;
        Ok(out.filled().len())
    }
}

impl Seek for BlockingObject {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let ChunkedObject { version, cursor } = &mut self.object;
        cursor.seek(version, to)
    }
}

/// A thread that waits for a future.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future that other threads complete. Needs no executor.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Parked(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}
