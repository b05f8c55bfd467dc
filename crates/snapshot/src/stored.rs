//! A value as it lies in the file, and how compressed ones are read.

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::owned::{CowValue, OwnedValue};
use crate::reader::Snapshot;
use crate::record::Record;
use crate::value::{Value, ValueType};
use std::fmt;
use std::sync::Arc;

/// A value as it lies in the file: its type is known, its bytes are not yet looked at.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    snapshot: &'a Snapshot,
    bytes: &'a [u8],
    value_type: ValueType,
    compressed: bool,
}

impl<'a> Stored<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, record: &Record<'a>) -> Self {
        Self {
            snapshot,
            bytes: record.stored,
            value_type: record.value_type,
            compressed: record.compressed,
        }
    }

    #[inline(always)]
    pub(crate) fn plain(snapshot: &'a Snapshot, value_type: ValueType, bytes: &'a [u8]) -> Self {
        Self { snapshot, bytes, value_type, compressed: false }
    }

    /// The type of the value.
    #[inline]
    pub fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// Returns whether the value is compressed, so that reading it takes memory.
    #[inline]
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// The bytes in the file: little-endian numbers, text, or a zstd frame of either.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads the value: borrowed from the file, or decompressed into memory of its own.
    #[inline(always)]
    pub fn value(&self) -> Result<CowValue<'a>> {
        if !self.compressed
            && let Ok(value) = Value::from_bytes(self.value_type, self.bytes)
        {
            return Ok(CowValue::Borrowed(value));
        }
        self.read_owned().map(CowValue::Owned)
    }

    /// Reads the value where it lies in the file. Returns `None` if it is compressed.
    #[inline(always)]
    pub fn in_place(&self) -> Result<Option<Value<'a>>> {
        if self.compressed {
            return Ok(None);
        }
        self.read_uncompressed().map(Some)
    }

    /// Reads a value that is not compressed.
    #[inline(always)]
    fn read_uncompressed(&self) -> Result<Value<'a>> {
        match Value::from_bytes(self.value_type, self.bytes) {
            Ok(value) => Ok(value),
            Err(broken) => Err(self.corrupt(broken.expected(), "other bytes")),
        }
    }

    /// Reads a compressed value, or returns the error for a damaged one of either kind. Takes
    /// `self` by value: a reference would keep it in memory on the caller's fast path.
    #[cold]
    #[inline(never)]
    fn read_owned(self) -> Result<Arc<OwnedValue>> {
        Scratch::with_thread_local(|scratch| Ok(Arc::new(self.decompress(scratch)?.into())))
    }

    /// Reads the value: borrowed from the file, or decompressed into the scratch buffer. Allocates
    /// nothing once the buffer is as large as the largest value.
    pub fn decompress<'s>(&self, scratch: &'s mut Scratch) -> Result<Value<'s>>
    where
        'a: 's,
    {
        if !self.compressed {
            return self.read_uncompressed();
        }
        let bytes = scratch
            .fill(self.bytes, &self.snapshot.dictionary)
            .map_err(|found| self.corrupt("a zstd frame of at most 16 MiB", found))?;
        Value::from_bytes(self.value_type, bytes)
            .map_err(|broken| self.corrupt(broken.expected(), "other bytes in a zstd frame"))
    }

    #[cold]
    fn corrupt(&self, expected: &str, found: impl fmt::Display) -> Error {
        let offset = self.bytes.as_ptr().addr() - self.snapshot.map.bytes().as_ptr().addr();
        self.snapshot.corrupt(offset as u64, expected, found)
    }
}

impl fmt::Debug for Stored<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("value_type", &self.value_type)
            .field("compressed", &self.compressed)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}
