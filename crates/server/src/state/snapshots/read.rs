//! Reads values of snapshots.

use super::routes::{SnapshotKey, Snapshots};
use super::served::Counts;
use super::thread::ThreadReaders;
use crate::log;
use nuthatch_snapshot::{Error, Prefetched, Snapshot, StoredValue, Value, ValueType};
use nuthatch_value_text::{raw_value, tsv_value};
use std::fmt;
use std::hash::BuildHasher;

/// Maximum factor by which the text of a list is longer than its stored form: a character of one
/// byte becomes an escape of six.
const MAX_TEXT_RATIO: usize = 6;

/// Texts of up to this many bytes are sent without a check: a reply may always be as long.
const SHORT_TEXT_LEN: usize = 64 << 10;

/// Maximum bytes of a key that an error quotes.
const MAX_QUOTED_LEN: usize = 64;

/// A key of a snapshot whose index line is prefetched.
#[derive(Clone, Copy)]
pub(crate) struct PrefetchedKey {
    number: usize,
    line: Prefetched,
}

/// Why a value cannot be returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The file is damaged, with a text for the client.
    Damaged(String),
    /// The text of the value may exceed the maximum length.
    TooLong,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(text) => f.write_str(text),
            Self::TooLong => {
                f.write_str("the value is longer than the free memory for connections")
            }
        }
    }
}

impl SnapshotKey<'_> {
    /// Prefetches the index line of the key.
    #[inline]
    pub(crate) fn prefetch(self) -> PrefetchedKey {
        let number = self.number;
        let line = self.snapshots.with_last(number, |snapshot| snapshot.prefetch(self.key));
        PrefetchedKey { number, line }
    }

    /// Calls `read` with the text of the value, or `None` for a missing key, and counts the lookup.
    /// The text is what `nuthatch get` prints: strings and bytes unchanged, numbers in decimal,
    /// `true` or `false`, lists in JSON.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLong`] if the text may exceed `max_len`, which is called only for texts of
    /// more than 64 KiB, and [`ReadError::Damaged`], also after `read` was called: the caller must
    /// discard its result.
    #[inline]
    pub(crate) fn text<R>(
        self,
        max_len: impl Fn() -> usize,
        read: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R, ReadError> {
        self.snapshots.with_thread(|thread| {
            let ThreadReaders { readers, scratch, text, .. } = thread;
            let (reader, counts) = &readers[self.number];
            let snapshot = reader.last();
            let stored = match snapshot.find(self.key) {
                Ok(Some(stored)) => stored,
                Ok(None) => {
                    self.check_readable(snapshot, counts)?;
                    counts.misses.add(1);
                    return Ok(read(None));
                }
                Err(error) => return Err(self.damaged(counts, &error)),
            };
            counts.hits.add(1);
            let is_text = matches!(stored.value_type(), ValueType::String | ValueType::Bytes);
            let result = if is_text && !stored.is_compressed() {
                // The usual case. Whether a string is UTF-8 was verified when the file was opened.
                check_len(max_len, stored.bytes().len())?;
                read(Some(stored.bytes()))
            } else {
                let value = stored.decompress(scratch);
                let value = value.map_err(|error| self.damaged(counts, &error))?;
                text_of(max_len, &value, text).map(|text| read(Some(text)))?
            };
            self.check_readable(snapshot, counts)?;
            Ok(result)
        })
    }

    /// Calls `read` with the value, or `None` for a missing key, and counts the lookup.
    ///
    /// # Errors
    ///
    /// [`ReadError::Damaged`], also after `read` was called: the caller must discard its result.
    pub(crate) fn value<R>(
        self,
        read: impl FnOnce(Option<&Value<'_>>) -> R,
    ) -> Result<R, ReadError> {
        self.snapshots.with_thread(|thread| {
            let ThreadReaders { readers, scratch, .. } = thread;
            let (reader, counts) = &readers[self.number];
            let snapshot = reader.last();
            let damaged = |error: &Error| self.damaged(counts, error);
            let stored = snapshot.find(self.key).map_err(|error| damaged(&error))?;
            let result = if let Some(stored) = stored {
                let value = stored.decompress(scratch).map_err(|error| damaged(&error))?;
                counts.hits.add(1);
                read(Some(&value))
            } else {
                counts.misses.add(1);
                read(None)
            };
            self.check_readable(snapshot, counts)?;
            Ok(result)
        })
    }

    /// Calls `read` with the value as it is stored, or `None` for a missing key. Not counted.
    fn stored<R>(self, read: impl FnOnce(Option<StoredValue<'_>>) -> R) -> Result<R, ReadError> {
        self.snapshots.with_thread(|thread| {
            let (reader, counts) = &thread.readers[self.number];
            let snapshot = reader.last();
            let stored = snapshot.find(self.key).map_err(|error| self.damaged(counts, &error))?;
            let result = read(stored);
            self.check_readable(snapshot, counts)?;
            Ok(result)
        })
    }

    /// Returns the type of the value, or `None` for a missing key.
    pub(crate) fn value_type(self) -> Result<Option<ValueType>, ReadError> {
        self.stored(|stored| stored.map(|stored| stored.value_type()))
    }

    /// Returns the bytes of key and value in the file, or `None` for a missing key.
    pub(crate) fn stored_len(self) -> Result<Option<usize>, ReadError> {
        self.stored(|stored| stored.map(|stored| self.key.len() + stored.bytes().len()))
    }

    /// Returns the length of the text of the value, 0 for a missing key, and counts the lookup. The
    /// text of a string, of bytes and of numbers is not made for it.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`text`](Self::text), with the maximum length for lists alone.
    pub(crate) fn text_len(self, max_len: impl Fn() -> usize) -> Result<usize, ReadError> {
        let is_whole = self.value_type()?.is_some_and(is_list);
        self.text(
            || if is_whole { max_len() } else { usize::MAX },
            |text| text.map_or(0, <[u8]>::len),
        )
    }

    /// Returns a hash of the value, or `None` for a missing key. Equal values have equal hashes,
    /// however they are compressed.
    pub(crate) fn digest(self) -> Result<Option<u64>, ReadError> {
        let hasher = &self.snapshots.hasher;
        self.value(|value| {
            value.map(|value| {
                let mut bytes = Vec::new();
                raw_value(value, &mut bytes);
                hasher.hash_one((value.value_type().code(), bytes))
            })
        })
    }

    /// Checks that what was read came from the file, which may have been truncated.
    #[inline]
    fn check_readable(self, snapshot: &Snapshot, counts: &Counts) -> Result<(), ReadError> {
        snapshot.check_readable_for(self.key).map_err(|error| self.damaged(counts, &error))
    }

    /// Counts and logs damage, and returns the error for the client, without the path.
    #[cold]
    fn damaged(self, counts: &Counts, error: &Error) -> ReadError {
        self.snapshots.note_damage(self.number, counts, error);
        let name = &self.snapshots.served[self.number].source.name;
        ReadError::Damaged(format!("the file of snapshot {name} is damaged at this key"))
    }
}

impl Snapshots {
    /// Prefetches the record of a key, after its index line.
    #[inline]
    pub(crate) fn prefetch_record(&self, PrefetchedKey { number, line }: PrefetchedKey) {
        self.with_last(number, |snapshot| snapshot.prefetch_record(line));
    }

    /// Returns the error for a request that would write to this key, and counts it; `None` if it is
    /// a key of the cache.
    #[cold]
    pub(crate) fn refuse_write(&self, key: &[u8]) -> Option<String> {
        let found = self.key(key)?;
        self.with_thread(|thread| thread.readers[found.number].1.refused_writes.add(1));
        let name = &self.served[found.number].source.name;
        let shown = key[..key.len().min(MAX_QUOTED_LEN)].escape_ascii();
        Some(format!(
            "READONLY key \"{shown}\" belongs to snapshot {name}, which is read-only; publish a \
             new snapshot to change it"
        ))
    }

    /// Counts and logs damage in the snapshot with this number.
    #[cold]
    pub(super) fn note_damage(&self, number: usize, counts: &Counts, error: &Error) {
        counts.errors.add(1);
        log::snapshot_damaged(&self.served[number].source.name, error);
    }
}

/// Checks the length of a text against the maximum of a reply.
#[inline]
fn check_len(max_len: impl Fn() -> usize, len: usize) -> Result<(), ReadError> {
    // Most texts are short, and the maximum takes longer to determine.
    let fits = len <= SHORT_TEXT_LEN || len <= max_len();
    if fits { Ok(()) } else { Err(ReadError::TooLong) }
}

/// Returns the text of a value, in `buffer` unless the value is a text.
fn text_of<'v>(
    max_len: impl Fn() -> usize,
    value: &'v Value<'_>,
    buffer: &'v mut Vec<u8>,
) -> Result<&'v [u8], ReadError> {
    match value {
        Value::String(text) => check_len(max_len, text.len()).map(|()| text.as_bytes()),
        Value::Bytes(bytes) => check_len(max_len, bytes.len()).map(|()| *bytes),
        _ => {
            check_len(max_len, stored_len(value).saturating_mul(MAX_TEXT_RATIO))?;
            buffer.clear();
            tsv_value(value, buffer);
            Ok(buffer)
        }
    }
}

/// Returns whether the type is that of a list.
pub(crate) fn is_list(value_type: ValueType) -> bool {
    !matches!(
        value_type,
        ValueType::Bytes | ValueType::String | ValueType::Bool | ValueType::I64 | ValueType::F64
    )
}

/// Returns the length of the uncompressed stored form of a list in bytes; 0 for other values.
fn stored_len(value: &Value<'_>) -> usize {
    match value {
        Value::I64List(list) => size_of_val(*list),
        Value::F64List(list) => size_of_val(*list),
        Value::F32List(list) => size_of_val(*list),
        Value::StringList(list) => list.as_bytes().len(),
        _ => 0,
    }
}
