//! Stored values: values whose bytes are not decoded yet.

use super::decompress::Scratch;
use super::file::SnapshotFile;
use crate::error::{Error, Result};
use crate::format::record::Record;
use crate::values::{CowValue, OwnedValue, Value, ValueType};
use std::fmt;
use std::sync::Arc;

/// A value in the file whose type is known and whose bytes are not decoded yet.
#[derive(Clone, Copy)]
pub struct StoredValue<'a> {
    file: &'a SnapshotFile,
    bytes: &'a [u8],
    value_type: ValueType,
    compressed: bool,
}

impl<'a> StoredValue<'a> {
    /// Returns the value of a record.
    pub(super) fn new(file: &'a SnapshotFile, record: &Record<'a>) -> Self {
        Self {
            file,
            bytes: record.stored,
            value_type: record.value_type,
            compressed: record.compressed,
        }
    }

    /// Returns an uncompressed value.
    #[inline(always)]
    pub(super) fn plain(file: &'a SnapshotFile, value_type: ValueType, bytes: &'a [u8]) -> Self {
        Self { file, bytes, value_type, compressed: false }
    }

    /// Returns the type of the value.
    #[inline]
    pub fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// Returns whether the value is compressed. [`value`](Self::value) allocates memory for a
    /// compressed value; [`decompress`](Self::decompress) reuses a buffer.
    #[inline]
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Returns the bytes in the file: little-endian numbers, text, or a zstd frame of either.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the value: borrowed from the file, or decompressed and owned.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the bytes are not a value of the type, or
    /// [`Error::Unreadable`] if a page of the file could not be read.
    #[inline(always)]
    pub fn value(&self) -> Result<CowValue<'a>> {
        if !self.compressed
            && let Ok(value) = Value::from_bytes(self.value_type, self.bytes)
        {
            return Ok(CowValue::Borrowed(value));
        }
        self.read_owned().map(CowValue::Owned)
    }

    /// Returns the value borrowed from the file, or `None` if it is compressed.
    ///
    /// # Errors
    /// Returns the same errors as [`value`](Self::value).
    #[inline(always)]
    pub fn in_place(&self) -> Result<Option<Value<'a>>> {
        if self.compressed {
            return Ok(None);
        }
        self.read_uncompressed().map(Some)
    }

    /// Decodes a value that is not compressed.
    #[inline(always)]
    fn read_uncompressed(&self) -> Result<Value<'a>> {
        match Value::from_bytes(self.value_type, self.bytes) {
            Ok(value) => Ok(value),
            Err(invalid) => Err(self.corrupt(invalid.expected(), "other bytes")),
        }
    }

    /// Decompresses a compressed value, or returns the error for an invalid one of either kind.
    /// Takes `self` by value: a reference would force it into memory on the caller's fast path.
    #[cold]
    #[inline(never)]
    fn read_owned(self) -> Result<Arc<OwnedValue>> {
        Scratch::with_thread_local(|scratch| Ok(Arc::new(self.decompress(scratch)?.into())))
    }

    /// Returns the value: borrowed from the file, or decompressed into `scratch`. Allocates nothing
    /// once the buffer has the length of the largest value.
    ///
    /// # Errors
    /// Returns the same errors as [`value`](Self::value).
    pub fn decompress<'s>(&self, scratch: &'s mut Scratch) -> Result<Value<'s>>
    where
        'a: 's,
    {
        if !self.compressed {
            return self.read_uncompressed();
        }
        let bytes = self.uncompressed_bytes(scratch)?;
        Value::from_bytes(self.value_type, bytes)
            .map_err(|invalid| self.corrupt(invalid.expected(), "other bytes in a zstd frame"))
    }

    /// Returns the bytes of the value as the format stores it without compression, whether they are
    /// in the file or were decompressed into `scratch`. The bytes of an uncompressed value are not
    /// validated.
    ///
    /// # Errors
    /// Returns the same errors as [`value`](Self::value) for a compressed value.
    pub fn uncompressed_bytes<'s>(&self, scratch: &'s mut Scratch) -> Result<&'s [u8]>
    where
        'a: 's,
    {
        if !self.compressed {
            return Ok(self.bytes);
        }
        scratch
            .fill(self.bytes, &self.file.dictionary)
            .map_err(|found| self.corrupt("a zstd frame of at most 16 MiB", found))
    }

    #[cold]
    fn corrupt(&self, expected: &str, found: impl fmt::Display) -> Error {
        let offset = self.bytes.as_ptr().addr() - self.file.map.bytes().as_ptr().addr();
        self.file.corrupt(offset as u64, expected, found)
    }
}

impl fmt::Debug for StoredValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredValue")
            .field("value_type", &self.value_type)
            .field("compressed", &self.compressed)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}
