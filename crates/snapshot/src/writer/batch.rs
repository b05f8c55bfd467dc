//! Rows collected by one thread before they go to the writer.

use super::row::{self, BLOB_MIN, Blob};
use super::spill::SpillFile;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::layout::limits;
use crate::value::{Value, ValueType};
use std::sync::Arc;

/// A batch is full at this many bytes of rows.
const FULL: usize = 1 << 20;

/// Rows on their way to a [`Writer`](crate::Writer). Threads that parse input each fill their own
/// and hand them over in the order that decides between duplicates.
#[derive(Debug)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) index: Vec<RowRef>,
    seed: u64,
    blobs: Arc<SpillFile>,
}

/// A row's hash, and where it lies: the number of its buffer above, the offset in it below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowRef {
    pub(crate) hash: u64,
    pub(crate) at: u64,
}

impl RowRef {
    pub(crate) fn new(hash: u64, buffer: usize, offset: usize) -> Self {
        Self { hash, at: (buffer as u64) << 32 | offset as u64 }
    }

    #[inline]
    pub(crate) fn buffer(self) -> usize {
        (self.at >> 32) as usize
    }

    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.at & 0xffff_ffff) as usize
    }
}

impl Batch {
    pub(crate) fn new(seed: u64, blobs: Arc<SpillFile>) -> Self {
        Self { bytes: Vec::new(), index: Vec::new(), seed, blobs }
    }

    /// Adds a row. The origin, which errors about duplicates name, is its number in the batch.
    pub fn push(&mut self, key: &[u8], value: Value<'_>) -> Result<()> {
        self.push_from(self.index.len() as u64, key, value)
    }

    /// Adds a row that came from somewhere: a line number, say. Errors about duplicates name it.
    pub fn push_from(&mut self, origin: u64, key: &[u8], value: Value<'_>) -> Result<()> {
        if key.len() > limits::KEY_LEN {
            let most = limits::KEY_LEN as u64;
            return Err(Error::limit("key length in bytes", most, key.len() as u64));
        }
        let value_type = value.value_type();
        value.with_bytes(|bytes| self.push_bytes(origin, key, (value_type, bytes)))
    }

    fn push_bytes(&mut self, origin: u64, key: &[u8], value: (ValueType, &[u8])) -> Result<()> {
        let (value_type, bytes) = value;
        let len = bytes.len() as u64;
        if len > limits::VALUE_LEN {
            return Err(Error::limit("value length in bytes", limits::VALUE_LEN, len));
        }
        let hash = KeyHash::of(key, self.seed);
        let offset = self.bytes.len();
        if bytes.len() < BLOB_MIN {
            if self.bytes.capacity() == 0 {
                self.bytes.reserve_exact(FULL + FULL / 8);
            }
            row::push(&mut self.bytes, (hash, origin), key, value);
        } else {
            let blob = Blob {
                offset: self.blobs.append(bytes)?,
                hash: row::value_hash(value_type, bytes),
            };
            row::push_blob(&mut self.bytes, (hash, origin), key, (value_type, len), blob);
        }
        self.index.push(RowRef::new(hash.0, 0, offset));
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Whether it is time to hand the batch over. A batch that is fuller works, and costs memory.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Memory held, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.index.capacity() * size_of::<RowRef>()
    }
}
