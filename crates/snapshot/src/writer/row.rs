//! Rows on their way to a file: `u64` hash, `u64` origin, `u64` meta, key, payload.
//!
//! Meta holds the type code in its low byte (with [`BLOB`] for a payload that was set aside), the
//! key's length in the next two and the value's in the upper five.

use crate::hash::KeyHash;
use crate::value::ValueType;
use xxhash_rust::xxh3;

/// Length of a row before its key.
pub(crate) const HEAD_LEN: usize = 24;

/// Flag beside the type code: the payload is a [`Blob`].
const BLOB: u8 = 0x80;

/// Values from this length on wait in a file of their own, so that rows stay small.
pub(crate) const BLOB_MIN: usize = 1 << 20;

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

/// Appends the row of a value given as bytes.
pub(crate) fn push(
    out: &mut Vec<u8>,
    (hash, origin): (KeyHash, u64),
    key: &[u8],
    (value_type, value): (ValueType, &[u8]),
) {
    let mut head = [0; HEAD_LEN];
    head[..8].copy_from_slice(&hash.0.to_le_bytes());
    head[8..16].copy_from_slice(&origin.to_le_bytes());
    let meta = meta(value_type.code(), key.len(), value.len() as u64);
    head[16..].copy_from_slice(&meta.to_le_bytes());
    out.reserve(HEAD_LEN + key.len() + value.len());
    out.extend_from_slice(&head);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Appends the row of a value that was set aside.
pub(crate) fn push_blob(
    out: &mut Vec<u8>,
    (hash, origin): (KeyHash, u64),
    key: &[u8],
    (value_type, len): (ValueType, u64),
    blob: Blob,
) {
    out.extend_from_slice(&hash.0.to_le_bytes());
    out.extend_from_slice(&origin.to_le_bytes());
    out.extend_from_slice(&meta(value_type.code() | BLOB, key.len(), len).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(&blob.offset.to_le_bytes());
    out.extend_from_slice(&blob.hash.to_le_bytes());
}

/// The row at the start of these bytes, which rows were pushed into, and its length.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> (Row<'_>, usize) {
    let meta = word(bytes, 16);
    let key_len = (meta >> 8) as usize & 0xffff;
    let value_len = meta >> 24;
    let code = meta as u8;
    let key_end = HEAD_LEN + key_len;
    let (payload, end) = if code & BLOB == 0 {
        let end = key_end + value_len as usize;
        (Payload::Bytes(&bytes[key_end..end]), end)
    } else {
        let blob = Blob { offset: word(bytes, key_end), hash: word(bytes, key_end + 8) };
        (Payload::Blob(blob), key_end + 16)
    };
    let row = Row {
        hash: KeyHash(word(bytes, 0)),
        origin: word(bytes, 8),
        value_type: ValueType::from_code(code & !BLOB).expect("rows hold known types"),
        key: &bytes[HEAD_LEN..key_end],
        value_len,
        payload,
    };
    (row, end)
}
