//! Rows: key-value pairs on their way to a file, encoded in memory or in a temporary file.
//!
//! An encoded row is: `u64` key hash, `u64` position, `u64` meta, key, payload. Meta holds the type
//! code in its low byte (with [`BLOB`] for a value in the blob file), the length of the key in the
//! next two bytes and the length of the value in the upper five.

use super::spill::SpillFile;
use crate::error::{Error, Result};
use crate::format::hash::KeyHash;
use crate::format::layout::limits;
use crate::values::{Value, ValueType};
use std::sync::Arc;
use xxhash_rust::xxh3;

/// Length of an encoded row before its key, in bytes.
pub(crate) const HEAD_LEN: usize = 24;

/// Flag beside the type code: the payload is a [`Blob`].
const BLOB: u8 = 0x80;

/// Minimum length in bytes of a value that is always stored in the blob file, so that rows stay
/// small.
const MIN_BLOB_LEN: usize = 1 << 20;

/// Minimum length in bytes of a value that is moved to the blob file when its row is spilled, so
/// that reading many rows back takes little memory.
pub(crate) const MIN_SPILLED_BLOB_LEN: usize = 4 << 10;

/// Minimum length in bytes of a value that rows share. A reference takes six bytes and costs the
/// reader a cache miss, so shorter values are stored with each entry.
pub(crate) const MIN_SHARED_VALUE_LEN: u64 = 32;

/// Length in bytes of the payload of a row whose value is in the blob file.
const BLOB_LEN: usize = 16;

/// Memory that encoded rows are appended to.
pub(crate) trait RowSpace {
    /// Appends a row, whose bytes are these parts.
    fn append_row(&mut self, parts: [&[u8]; 3]);
}

impl RowSpace for Vec<u8> {
    #[inline]
    fn append_row(&mut self, parts: [&[u8]; 3]) {
        self.reserve(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            self.extend_from_slice(part);
        }
    }
}

/// A value in the blob file, a temporary file for long values: its offset and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) offset: u64,
    pub(crate) hash: u64,
}

/// The stored bytes of a value, or their location in the blob file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    Bytes(&'a [u8]),
    Blob(Blob),
}

/// A decoded row. Borrows from the encoded one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) hash: KeyHash,
    pub(crate) position: u64,
    pub(crate) value_type: ValueType,
    pub(crate) key: &'a [u8],
    pub(crate) value_len: u64,
    pub(crate) payload: Payload<'a>,
}

impl Row<'_> {
    /// Returns the length of the row when it is spilled, which is also the memory that it takes
    /// while it is written.
    pub(crate) fn weight(&self) -> u64 {
        weight(self.key.len(), self.value_len)
    }
}

#[cfg(feature = "zstd")]
impl<'a> Row<'a> {
    /// Returns the stored bytes of the value. Reads them if they are in the blob file.
    pub(crate) fn value(&self, blobs: &SpillFile) -> Result<std::borrow::Cow<'a, [u8]>> {
        match self.payload {
            Payload::Bytes(bytes) => Ok(bytes.into()),
            Payload::Blob(blob) => {
                let mut bytes = vec![0; self.value_len as usize];
                blobs.read_at(&mut bytes, blob.offset)?;
                Ok(bytes.into())
            }
        }
    }
}

/// Returns the length of a spilled row with a key and a value of these lengths.
#[inline]
pub(crate) fn weight(key_len: usize, value_len: u64) -> u64 {
    let payload = if value_len < MIN_SPILLED_BLOB_LEN as u64 { value_len } else { BLOB_LEN as u64 };
    (HEAD_LEN + key_len) as u64 + payload
}

/// Returns the hash that finds equal values. It includes the type.
pub(crate) fn value_hash(value_type: ValueType, bytes: &[u8]) -> u64 {
    xxh3::xxh3_64_with_seed(bytes, u64::from(value_type.code()))
}

fn meta(type_code: u8, key_len: usize, value_len: u64) -> u64 {
    u64::from(type_code) | (key_len as u64) << 8 | value_len << 24
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Encodes keys and values as rows, on one thread.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    seed: u64,
    blobs: Arc<SpillFile>,
}

impl Encoder {
    pub(crate) fn new(seed: u64, blobs: Arc<SpillFile>) -> Self {
        Self { seed, blobs }
    }

    /// Returns whether two encoders are clones of one.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.blobs, &other.blobs)
    }

    /// Returns the number of the shard of a key in a set of `shards` shards.
    pub(crate) fn shard(&self, key: &[u8], shards: u32) -> u32 {
        KeyHash::of(key, self.seed).shard(shards)
    }

    /// Appends a row. Returns its [weight](Row::weight).
    ///
    /// # Errors
    /// Returns [`Error::Limit`] if the key or the value is too long, or [`Error::Io`] if a long
    /// value cannot be written to the blob file.
    #[inline]
    pub(crate) fn encode(
        &self,
        position: u64,
        key: &[u8],
        value: Value<'_>,
        out: &mut impl RowSpace,
    ) -> Result<u64> {
        if key.len() > limits::MAX_KEY_LEN {
            let max = limits::MAX_KEY_LEN as u64;
            return Err(Error::limit("key length in bytes", max, key.len() as u64));
        }
        let value_type = value.value_type();
        let hash = KeyHash::of(key, self.seed);
        value.with_bytes(|bytes| {
            let len = bytes.len() as u64;
            if len > limits::MAX_VALUE_LEN {
                return Err(Error::limit("value length in bytes", limits::MAX_VALUE_LEN, len));
            }
            if bytes.len() < MIN_BLOB_LEN {
                write(out, (hash, position), key, (value_type.code(), len), bytes);
            } else {
                write_with_blob(out, (hash, position), key, (value_type, bytes), &self.blobs)?;
            }
            Ok(weight(key.len(), len))
        })
    }
}

/// Appends a row, and its value to the blob file.
pub(crate) fn write_with_blob(
    out: &mut impl RowSpace,
    hash_and_position: (KeyHash, u64),
    key: &[u8],
    (value_type, value): (ValueType, &[u8]),
    blobs: &SpillFile,
) -> Result<()> {
    let mut payload = [0; BLOB_LEN];
    payload[..8].copy_from_slice(&blobs.append(value)?.to_le_bytes());
    payload[8..].copy_from_slice(&value_hash(value_type, value).to_le_bytes());
    write(out, hash_and_position, key, (value_type.code() | BLOB, value.len() as u64), &payload);
    Ok(())
}

#[inline]
fn write(
    out: &mut impl RowSpace,
    (hash, position): (KeyHash, u64),
    key: &[u8],
    (code, value_len): (u8, u64),
    payload: &[u8],
) {
    let mut head = [0; HEAD_LEN];
    head[..8].copy_from_slice(&hash.0.to_le_bytes());
    head[8..16].copy_from_slice(&position.to_le_bytes());
    head[16..].copy_from_slice(&meta(code, key.len(), value_len).to_le_bytes());
    out.append_row([&head, key, payload]);
}

/// Decodes the row at the start of these bytes.
///
/// # Panics
/// Panics if no encoded row begins there.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> Row<'_> {
    let meta = word(bytes, 16);
    let key_len = (meta >> 8) as usize & 0xffff;
    let value_len = meta >> 24;
    let code = meta as u8;
    let key_end = HEAD_LEN + key_len;
    let payload = if code & BLOB == 0 {
        Payload::Bytes(&bytes[key_end..key_end + value_len as usize])
    } else {
        Payload::Blob(Blob { offset: word(bytes, key_end), hash: word(bytes, key_end + 8) })
    };
    Row {
        hash: KeyHash(word(bytes, 0)),
        position: word(bytes, 8),
        value_type: ValueType::from_code(code & !BLOB).expect("rows hold known types"),
        key: &bytes[HEAD_LEN..key_end],
        value_len,
        payload,
    }
}

/// A reference to a row: the key hash, and the location of the row.
///
/// The location holds the number of the buffer, the offset in the buffer in 32 bits, and in the
/// lowest bit whether the value is long enough to be shared. So locations are in the order in which
/// rows were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowRef {
    pub(crate) hash: u64,
    location: u64,
}

impl RowRef {
    /// Returns the location of the row.
    pub(crate) fn location(self) -> u64 {
        self.location
    }

    /// Returns a reference to the row at a location, with a hash of zero.
    pub(crate) fn from_location(location: u64) -> Self {
        Self { hash: 0, location }
    }

    /// Returns the number of the row's buffer.
    #[inline]
    pub(crate) fn buffer(self) -> usize {
        (self.location >> 33) as usize
    }

    /// Returns the offset of the row in its buffer.
    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.location >> 1 & 0xffff_ffff) as usize
    }

    /// Returns whether the value is long enough to be shared.
    #[inline]
    pub(crate) fn may_share(self) -> bool {
        self.location & 1 != 0
    }
}

/// Returns references to the rows of the buffer with this number, from the row at an offset.
#[inline]
pub(crate) fn refs_of(
    buffer: usize,
    bytes: &[u8],
    mut offset: usize,
) -> impl Iterator<Item = RowRef> {
    std::iter::from_fn(move || {
        let row = bytes.get(offset..).filter(|row| !row.is_empty())?;
        let meta = word(row, 16);
        let value_len = meta >> 24;
        let may_share = u64::from(value_len >= MIN_SHARED_VALUE_LEN);
        let location = (buffer as u64) << 33 | (offset as u64) << 1 | may_share;
        offset += len_of(meta);
        Some(RowRef { hash: word(row, 0), location })
    })
}

/// Returns the length of the complete rows at the start of these bytes.
pub(crate) fn whole_rows_len(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(head) = bytes[end..].get(..HEAD_LEN) {
        let next = end + len_of(word(head, 16));
        if next > bytes.len() {
            break;
        }
        end = next;
    }
    end
}

/// Returns the length of the encoded row with this meta.
#[inline]
pub(crate) fn len_of(meta: u64) -> usize {
    let payload = if meta as u8 & BLOB == 0 { (meta >> 24) as usize } else { BLOB_LEN };
    HEAD_LEN + ((meta >> 8) as usize & 0xffff) + payload
}

/// Returns the bytes of the encoded row at this offset.
pub(crate) fn bytes_at(buffer: &[u8], offset: usize) -> &[u8] {
    let row = &buffer[offset..];
    &row[..len_of(word(row, 16))]
}
