//! Reads of files: the buffers that the kernel fills.

use std::fmt;
use std::io;

/// Direct I/O requires memory at a multiple of this.
const ALIGNMENT: usize = 4096;

/// A buffer for reads of files. Its bytes begin at a multiple of 4 KiB in memory, as direct I/O
/// requires.
pub struct ReadBuffer {
    /// Never enlarged, so its bytes stay where they are, also if the buffer is moved.
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl ReadBuffer {
    /// Creates a buffer of `len` zeros.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Self { bytes, start, len }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// Returns the length.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

impl fmt::Debug for ReadBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The buffers of reads in progress, by the number of the read.
#[derive(Debug, Default)]
pub(crate) struct Reads(Vec<Option<ReadBuffer>>);

impl Reads {
    /// Keeps a buffer until its read ends, and returns its first `len` bytes.
    pub(crate) fn begin(
        &mut self,
        number: u32,
        buffer: ReadBuffer,
        len: usize,
    ) -> io::Result<&mut [u8]> {
        let at = number as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        let place = &mut self.0[at];
        if place.is_some() || len > buffer.len() {
            let message = format!("read {number}: expected a free number and a longer buffer");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(&mut place.insert(buffer).bytes_mut()[..len])
    }

    /// Ends a read. `None` if there is none with this number.
    pub(crate) fn end(&mut self, number: u32) -> Option<ReadBuffer> {
        self.0.get_mut(number as usize)?.take()
    }
}
