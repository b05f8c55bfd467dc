//! Comparison of values in memory, in the blob file or in the new file.

use super::row::{Payload, Row};
use super::spill::SpillFile;
use crate::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Number of bytes of a value in a file that are compared at a time.
const PIECE_LEN: u64 = 256 << 10;

/// The location of the stored bytes of a value. Numbers are offsets in the file.
pub(crate) enum Bytes<'a> {
    Memory(&'a [u8]),
    /// In the blob file.
    Blob(&'a SpillFile, u64),
    /// In the new file, which has this path.
    Target((&'a File, &'a Path), u64),
}

/// Returns the location of a row's value.
pub(crate) fn bytes_of<'a>(row: &Row<'a>, blobs: &'a SpillFile) -> Bytes<'a> {
    match row.payload {
        Payload::Bytes(bytes) => Bytes::Memory(bytes),
        Payload::Blob(blob) => Bytes::Blob(blobs, blob.offset),
    }
}

/// Returns whether two rows have the same value.
pub(crate) fn same_value(one: &Row<'_>, other: &Row<'_>, blobs: &SpillFile) -> Result<bool> {
    if (one.value_type, one.value_len) != (other.value_type, other.value_len) {
        return Ok(false);
    }
    same_bytes((&bytes_of(one, blobs), one.value_len), &bytes_of(other, blobs))
}

impl Bytes<'_> {
    /// Returns `len` bytes of the value from offset `at`. Reads them into `buffer` unless they are
    /// in memory.
    fn part<'b>(&'b self, at: u64, len: usize, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        if !matches!(self, Self::Memory(_)) {
            buffer.resize(len, 0);
        }
        match self {
            Self::Memory(bytes) => return Ok(&bytes[at as usize..at as usize + len]),
            Self::Blob(file, offset) => file.read_at(buffer, offset + at)?,
            Self::Target((file, path), offset) => file
                .read_exact_at(buffer, offset + at)
                .map_err(|e| Error::io(path, "read back", e))?,
        }
        Ok(buffer)
    }
}

/// Returns whether the first `len` bytes of both values are equal.
pub(crate) fn same_bytes((one, len): (&Bytes<'_>, u64), other: &Bytes<'_>) -> Result<bool> {
    if let (Bytes::Memory(one), Bytes::Memory(other)) = (one, other) {
        return Ok(one[..len as usize] == other[..len as usize]);
    }
    let (mut one_part, mut other_part) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < len {
        let piece = (len - at).min(PIECE_LEN) as usize;
        if one.part(at, piece, &mut one_part)? != other.part(at, piece, &mut other_part)? {
            return Ok(false);
        }
        at += piece as u64;
    }
    Ok(true)
}
