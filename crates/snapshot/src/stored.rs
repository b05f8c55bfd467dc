//! A value as it lies in the file, and how compressed ones are read.

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::reader::Snapshot;
use crate::record::Record;
use crate::value::{Value, ValueType};
use std::fmt;

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

    /// Whether the value is compressed, so that only [`decompress`](Self::decompress) reads it.
    #[inline]
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// The bytes in the file: little-endian numbers, text, or a zstd frame of either.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The value, in place. Fails with [`Error::Compressed`] on a compressed value.
    #[inline(always)]
    pub fn value(&self) -> Result<Value<'a>> {
        self.value_of(self.value_type)
    }

    /// The value, of a type that is known to be this one. With a constant for the type, the ways to
    /// read the other types fall away.
    #[inline(always)]
    pub(crate) fn value_of(&self, value_type: ValueType) -> Result<Value<'a>> {
        if self.compressed {
            return Err(Error::Compressed);
        }
        match Value::from_bytes(value_type, self.bytes) {
            Ok(value) => Ok(value),
            Err(broken) => Err(self.corrupt(broken.expected(), "other bytes")),
        }
    }

    /// The value, decompressed into the scratch buffer where it is compressed.
    pub fn decompress<'s>(&self, scratch: &'s mut Scratch) -> Result<Value<'s>>
    where
        'a: 's,
    {
        if !self.compressed {
            return self.value();
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
