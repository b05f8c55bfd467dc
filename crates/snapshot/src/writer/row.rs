//! Rows on their way to a file: `u64` hash, `u64` origin, `u64` meta, key, payload.
//!
//! Meta holds the type code in its low byte (with [`BLOB`] for a payload that was set aside), the
//! key's length in the next two and the value's in the upper five.

use super::buffer::Room;
use super::share::SHARE_MIN;
use super::spill::SpillFile;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::layout::limits;
use crate::value::{Value, ValueType};
use std::sync::Arc;
use xxhash_rust::xxh3;

/// Length of a row before its key.
pub(crate) const HEAD_LEN: usize = 24;

/// Flag beside the type code: the payload is a [`Blob`].
const BLOB: u8 = 0x80;

/// Values from this length on wait in a file of their own, so that rows stay small.
pub(crate) const BLOB_MIN: usize = 1 << 20;

/// Values from this length on are set aside when rows are spilled, so that reading back many rows
/// takes little memory.
pub(crate) const SET_ASIDE_MIN: usize = 4 << 10;

/// Length of the payload of a row whose value was set aside.
const BLOB_LEN: usize = 16;

/// A value that was set aside: where it lies in the file of blobs, and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) offset: u64,
    pub(crate) hash: u64,
}

/// A value's bytes, or where they wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    Bytes(&'a [u8]),
    Blob(Blob),
}

/// A row, read where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) hash: KeyHash,
    pub(crate) origin: u64,
    pub(crate) value_type: ValueType,
    pub(crate) key: &'a [u8],
    pub(crate) value_len: u64,
    pub(crate) payload: Payload<'a>,
}

impl Row<'_> {
    /// Bytes of the row as it is spilled, which is what it takes of memory while it is written.
    pub(crate) fn weight(&self) -> u64 {
        weight(self.key.len(), self.value_len)
    }
}

#[cfg(feature = "zstd")]
impl<'a> Row<'a> {
    /// The value's bytes, read from the file of blobs if it was set aside.
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

/// Bytes of a row with a key and a value of these lengths as it is spilled.
#[inline]
pub(crate) fn weight(key_len: usize, value_len: u64) -> u64 {
    let payload = if value_len < SET_ASIDE_MIN as u64 { value_len } else { BLOB_LEN as u64 };
    (HEAD_LEN + key_len) as u64 + payload
}

/// Hash of a value for sharing: values of other types are other values.
pub(crate) fn value_hash(value_type: ValueType, bytes: &[u8]) -> u64 {
    xxh3::xxh3_64_with_seed(bytes, u64::from(value_type.code()))
}

fn meta(type_code: u8, key_len: usize, value_len: u64) -> u64 {
    u64::from(type_code) | (key_len as u64) << 8 | value_len << 24
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Turns keys and values into rows. Each thread has one.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    seed: u64,
    blobs: Arc<SpillFile>,
}

impl Encoder {
    pub(crate) fn new(seed: u64, blobs: Arc<SpillFile>) -> Self {
        Self { seed, blobs }
    }

    /// Appends a row, unless something in it is beyond a limit of the format. Answers its weight.
    #[inline]
    pub(crate) fn encode(
        &self,
        origin: u64,
        key: &[u8],
        value: Value<'_>,
        out: &mut impl Room,
    ) -> Result<u64> {
        if key.len() > limits::KEY_LEN {
            let most = limits::KEY_LEN as u64;
            return Err(Error::limit("key length in bytes", most, key.len() as u64));
        }
        let value_type = value.value_type();
        let hash = KeyHash::of(key, self.seed);
        value.with_bytes(|bytes| {
            let len = bytes.len() as u64;
            if len > limits::VALUE_LEN {
                return Err(Error::limit("value length in bytes", limits::VALUE_LEN, len));
            }
            if bytes.len() < BLOB_MIN {
                write(out, (hash, origin), key, (value_type.code(), len), bytes);
            } else {
                write_set_aside(out, (hash, origin), key, (value_type, bytes), &self.blobs)?;
            }
            Ok(weight(key.len(), len))
        })
    }
}

/// Appends a row whose value goes to the file of blobs.
pub(crate) fn write_set_aside(
    out: &mut impl Room,
    place: (KeyHash, u64),
    key: &[u8],
    (value_type, value): (ValueType, &[u8]),
    blobs: &SpillFile,
) -> Result<()> {
    let mut payload = [0; BLOB_LEN];
    payload[..8].copy_from_slice(&blobs.append(value)?.to_le_bytes());
    payload[8..].copy_from_slice(&value_hash(value_type, value).to_le_bytes());
    write(out, place, key, (value_type.code() | BLOB, value.len() as u64), &payload);
    Ok(())
}

#[inline]
fn write(
    out: &mut impl Room,
    (hash, origin): (KeyHash, u64),
    key: &[u8],
    (code, value_len): (u8, u64),
    payload: &[u8],
) {
    let row = out.room(HEAD_LEN + key.len() + payload.len());
    let (head, rest) = row.split_at_mut(HEAD_LEN);
    head[..8].copy_from_slice(&hash.0.to_le_bytes());
    head[8..16].copy_from_slice(&origin.to_le_bytes());
    head[16..].copy_from_slice(&meta(code, key.len(), value_len).to_le_bytes());
    rest[..key.len()].copy_from_slice(key);
    rest[key.len()..].copy_from_slice(payload);
}

/// The row at the start of these bytes, which rows were written into.
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
        origin: word(bytes, 8),
        value_type: ValueType::from_code(code & !BLOB).expect("rows hold known types"),
        key: &bytes[HEAD_LEN..key_end],
        value_len,
        payload,
    }
}

/// A row's hash, and where it lies: the number of its buffer, the offset in it in 32 bits, and
/// lowest, whether the value is long enough to be shared. So order is the order rows were given in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowRef {
    pub(crate) hash: u64,
    at: u64,
}

impl RowRef {
    /// Returns where the row lies, without its hash.
    pub(crate) fn to_place(self) -> u64 {
        self.at
    }

    /// Returns a reference to the row that lies there, with a hash of zero.
    pub(crate) fn from_place(at: u64) -> Self {
        Self { hash: 0, at }
    }

    #[inline]
    pub(crate) fn buffer(self) -> usize {
        (self.at >> 33) as usize
    }

    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.at >> 1 & 0xffff_ffff) as usize
    }

    /// Whether the value is long enough to be shared.
    #[inline]
    pub(crate) fn may_share(self) -> bool {
        self.at & 1 != 0
    }
}

/// The rows of a buffer, which has this number.
pub(crate) fn refs_of(buffer: usize, bytes: &[u8]) -> impl Iterator<Item = RowRef> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let row = bytes.get(offset..).filter(|row| !row.is_empty())?;
        let meta = word(row, 16);
        let value_len = meta >> 24;
        let may_share = u64::from(value_len >= SHARE_MIN);
        let at = (buffer as u64) << 33 | (offset as u64) << 1 | may_share;
        offset += len_of(meta);
        Some(RowRef { hash: word(row, 0), at })
    })
}

/// Returns the length of the whole rows that these bytes begin with.
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

/// Length of the row with this meta.
#[inline]
pub(crate) fn len_of(meta: u64) -> usize {
    let payload = if meta as u8 & BLOB == 0 { (meta >> 24) as usize } else { BLOB_LEN };
    HEAD_LEN + ((meta >> 8) as usize & 0xffff) + payload
}

/// The bytes of the row that begins at this place.
pub(crate) fn bytes_at(buffer: &[u8], offset: usize) -> &[u8] {
    let row = &buffer[offset..];
    &row[..len_of(word(row, 16))]
}
