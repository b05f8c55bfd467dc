//! Reads of items on disk that a worker performs on its own ring.

use super::reactor::Uring;
use nuthatch_tiered::PlannedRead;
use nuthatch_uring::ReadBuffer;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

/// Maximum number of reads in progress.
const MAX_READS: usize = 128;
/// Maximum bytes that are being read, unless a single read is longer.
const MAX_BYTES: usize = 2 << 20;

/// Minimum length of a buffer, so that it can be used again for most reads.
const MIN_BUFFER_LEN: usize = 8 << 10;
/// Maximum length of a buffer that is kept after a read and counts as memory of the worker. A
/// longer one would take the room that its item needs; there is at most one that is longer than
/// [`MAX_BYTES`].
const MAX_COUNTED_LEN: usize = 64 << 10;
/// Maximum bytes of all buffers that are kept.
const MAX_KEPT_BYTES: usize = 512 << 10;

/// The reads of a worker.
#[derive(Default)]
pub(crate) struct DiskReads {
    /// Reads that were not started yet.
    planned: RefCell<VecDeque<PlannedRead>>,
    /// Reads in progress, by number.
    in_progress: Vec<Option<PlannedRead>>,
    free_numbers: Vec<u32>,
    /// Bytes that are being read.
    bytes: usize,
    kept: Vec<ReadBuffer>,
    kept_bytes: usize,
    /// Bytes of all buffers that count.
    memory: usize,
    /// The same, as last returned to the caller.
    reported: usize,
}

impl DiskReads {
    /// Adds a read that is to be performed, if there is one.
    pub(crate) fn plan(&self, read: Option<PlannedRead>) {
        self.planned.borrow_mut().extend(read);
    }

    /// Starts the next reads. Returns the change of the bytes of all buffers since the last call.
    pub(crate) fn start(&mut self, ring: &mut Uring) -> io::Result<isize> {
        while let Some(read) = self.next() {
            let len = read.len();
            let number = self.free_numbers.pop().unwrap_or_else(|| {
                self.in_progress.push(None);
                self.in_progress.len() as u32 - 1
            });
            let buffer = self.buffer(len);
            ring.read((read.file(), read.offset()), number, buffer, len as u32)?;
            self.bytes += len;
            self.in_progress[number as usize] = Some(read);
        }
        let change = self.memory.cast_signed() - self.reported.cast_signed();
        self.reported = self.memory;
        Ok(change)
    }

    /// Returns the next read if it may be in progress with the others.
    fn next(&mut self) -> Option<PlannedRead> {
        let count = self.in_progress.len() - self.free_numbers.len();
        let planned = self.planned.get_mut();
        let len = planned.front()?.len();
        if count > 0 && (count >= MAX_READS || self.bytes + len > MAX_BYTES) {
            return None;
        }
        planned.pop_front()
    }

    fn buffer(&mut self, len: usize) -> ReadBuffer {
        if let Some(at) = self.kept.iter().rposition(|buffer| buffer.len() >= len) {
            let buffer = self.kept.swap_remove(at);
            self.kept_bytes -= buffer.len();
            return buffer;
        }
        let buffer = ReadBuffer::new(len.max(MIN_BUFFER_LEN));
        self.memory += counted(&buffer);
        buffer
    }

    /// Returns the read with a number, which has ended.
    pub(crate) fn end(&mut self, number: u32) -> Option<PlannedRead> {
        let read = self.in_progress.get_mut(number as usize)?.take()?;
        self.free_numbers.push(number);
        self.bytes -= read.len();
        Some(read)
    }

    /// Keeps the buffer of a read that has ended for another one, or frees it.
    pub(crate) fn keep(&mut self, buffer: ReadBuffer) {
        let is_short = buffer.len() <= MAX_COUNTED_LEN;
        if is_short && self.kept_bytes + buffer.len() <= MAX_KEPT_BYTES {
            self.kept_bytes += buffer.len();
            self.kept.push(buffer);
        } else {
            self.memory -= counted(&buffer);
        }
    }
}

/// Returns the bytes that a buffer counts.
fn counted(buffer: &ReadBuffer) -> usize {
    if buffer.len() <= MAX_COUNTED_LEN { buffer.len() } else { 0 }
}
