//! Rows of a scan as one message, `ScanResponse` of `store.proto`, which is encoded and decoded
//! without an allocation for each row.

use bytes::{Buf, BufMut, Bytes};
use nuthatch_store::Row;
use prost::encoding::{
    DecodeContext, WireType, check_wire_type, decode_key, decode_varint, encode_key, encode_varint,
    encoded_len_varint, skip_field, uint64,
};
use prost::{DecodeError, Message};
use std::fmt;

/// Numbers of the fields of `ScanResponse` and `Row`.
mod field {
    pub(super) const ROWS: u32 = 1;
    pub(super) const TRANSACTION: u32 = 2;
    pub(super) const SEQUENCE: u32 = 3;
    pub(super) const KEY: u32 = 1;
    pub(super) const VALUE: u32 = 2;
}

/// A copy of rows of a scan, in one buffer.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RowBatch {
    /// Keys and values, each key followed by its value.
    data: Vec<u8>,
    /// The positions of the rows.
    rows: Vec<Place>,
    transaction: u64,
    sequence: u64,
}

/// The message, with the name that generated code uses.
pub(crate) type Rows = RowBatch;

/// The position of a row: a key followed by its value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    key: usize,
    key_len: u32,
    value_len: u32,
}

impl RowBatch {
    /// Returns an empty batch with capacity for `rows` rows of `bytes` bytes.
    pub(crate) fn with_capacity(rows: usize, bytes: usize) -> Self {
        let (data, rows) = (Vec::with_capacity(bytes), Vec::with_capacity(rows));
        Self { data, rows, transaction: 0, sequence: 0 }
    }

    /// Sets the state of the store that the rows are from.
    pub(crate) fn seen_at(mut self, transaction: u64, sequence: u64) -> Self {
        (self.transaction, self.sequence) = (transaction, sequence);
        self
    }

    /// Adds a row. Keys and values of the store fit the lengths used here.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        let (key_len, value_len) = (key.len() as u32, value.len() as u32);
        self.rows.push(Place { key: self.data.len(), key_len, value_len });
        self.data.extend_from_slice(key);
        self.data.extend_from_slice(value);
    }

    /// Returns the encoded length of a row in a message.
    pub(crate) fn row_len(key: usize, value: usize) -> usize {
        let body = body_len(key, value);
        1 + encoded_len_varint(body as u64) + body
    }

    /// Returns the memory of the rows in bytes.
    pub(crate) fn memory(rows: usize, bytes: usize) -> u64 {
        (bytes + rows * size_of::<Place>()) as u64
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows, as after the last row of a scan in a transaction.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the row at `index`; `None` if `index` is out of bounds.
    pub fn get(&self, index: usize) -> Option<Row<'_>> {
        self.rows.get(index).map(|place| self.row(*place))
    }

    /// Returns the rows in the order of the scan.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> + DoubleEndedIterator {
        self.rows.iter().map(|place| self.row(*place))
    }

    /// Returns copies of the rows.
    pub fn to_vec(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }

    /// Returns the number of the last transaction that is part of the state of the rows.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }

    /// Returns the sequence number of the last change in that state. A watch can continue after it.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    fn row(&self, place: Place) -> Row<'_> {
        let row = self.data.get(place.key..).unwrap_or_default();
        let (key, rest) = row.split_at_checked(place.key_len as usize).unwrap_or_default();
        (key, rest.get(..place.value_len as usize).unwrap_or_default())
    }

    /// Decodes a row and adds it.
    fn merge_row(&mut self, mut body: Bytes) -> Result<(), DecodeError> {
        let (mut key, mut value) = (Bytes::new(), Bytes::new());
        while body.has_remaining() {
            let (tag, wire_type) = decode_key(&mut body)?;
            match tag {
                field::KEY => key = take(wire_type, &mut body)?,
                field::VALUE => value = take(wire_type, &mut body)?,
                _ => skip_field(wire_type, tag, &mut body, DecodeContext::default())?,
            }
        }
        self.push(&key, &value);
        Ok(())
    }
}

/// Returns the bytes of a field of type bytes or message.
fn take(wire_type: WireType, buffer: &mut impl Buf) -> Result<Bytes, DecodeError> {
    check_wire_type(WireType::LengthDelimited, wire_type)?;
    let len = decode_varint(buffer)?;
    if len > buffer.remaining() as u64 {
        // The error that generated code returns for such a field.
        return Bytes::decode_length_delimited(&[0x80][..]);
    }
    Ok(buffer.copy_to_bytes(len as usize))
}

fn field_len(len: usize) -> usize {
    if len == 0 { 0 } else { 1 + encoded_len_varint(len as u64) + len }
}

fn body_len(key: usize, value: usize) -> usize {
    field_len(key) + field_len(value)
}

fn put_field(tag: u32, bytes: &[u8], buffer: &mut impl BufMut) {
    if !bytes.is_empty() {
        encode_key(tag, WireType::LengthDelimited, buffer);
        encode_varint(bytes.len() as u64, buffer);
        buffer.put_slice(bytes);
    }
}

impl Message for RowBatch {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        for (key, value) in self.iter() {
            encode_key(field::ROWS, WireType::LengthDelimited, buffer);
            encode_varint(body_len(key.len(), value.len()) as u64, buffer);
            put_field(field::KEY, key, buffer);
            put_field(field::VALUE, value, buffer);
        }
        for (tag, number) in
            [(field::TRANSACTION, self.transaction), (field::SEQUENCE, self.sequence)]
        {
            if number != 0 {
                uint64::encode(tag, &number, buffer);
            }
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            field::ROWS => {
                let body = take(wire_type, buffer)?;
                self.merge_row(body)
            }
            field::TRANSACTION => uint64::merge(wire_type, &mut self.transaction, buffer, context),
            field::SEQUENCE => uint64::merge(wire_type, &mut self.sequence, buffer, context),
            _ => skip_field(wire_type, tag, buffer, context),
        }
    }

    fn encoded_len(&self) -> usize {
        let rows = self.rows.iter();
        let rows = rows.map(|row| Self::row_len(row.key_len as usize, row.value_len as usize));
        let numbers = [(field::TRANSACTION, self.transaction), (field::SEQUENCE, self.sequence)];
        let numbers = numbers.iter().filter(|(_, number)| *number != 0);
        rows.sum::<usize>() + numbers.map(|(tag, n)| uint64::encoded_len(*tag, n)).sum::<usize>()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl fmt::Debug for RowBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowBatch").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ScanResponse` as any other protobuf compiler generates it.
    #[derive(Clone, PartialEq, Message)]
    struct Plain {
        #[prost(message, repeated, tag = "1")]
        rows: Vec<PlainRow>,
        #[prost(uint64, tag = "2")]
        transaction: u64,
        #[prost(uint64, tag = "3")]
        sequence: u64,
    }

    #[derive(Clone, PartialEq, Message)]
    struct PlainRow {
        #[prost(bytes = "vec", tag = "1")]
        key: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        value: Vec<u8>,
    }

    fn both() -> (RowBatch, Plain) {
        let long = vec![7; 70_000];
        let rows: [(&[u8], &[u8]); 4] =
            [(b"a", b"1"), (b"empty", b""), (b"long", &long), (&long[..511], &long[..128])];
        let mut batch = RowBatch::with_capacity(0, 0);
        for (key, value) in rows {
            batch.push(key, value);
        }
        let rows =
            rows.iter().map(|(key, value)| PlainRow { key: key.to_vec(), value: value.to_vec() });
        let plain = Plain { rows: rows.collect(), transaction: 300, sequence: 1 << 40 };
        (batch.seen_at(300, 1 << 40), plain)
    }

    #[test]
    fn a_batch_is_the_message_of_the_definition() {
        let (batch, plain) = both();
        let bytes = batch.encode_to_vec();
        assert_eq!(bytes.len(), batch.encoded_len());
        assert_eq!(Plain::decode(&bytes[..]).expect("a message"), plain);
        assert_eq!(bytes, plain.encode_to_vec());
        let back = RowBatch::decode(&bytes[..]).expect("a message");
        assert_eq!((back.clone(), back.to_vec()), (batch.clone(), batch.to_vec()));
        assert_eq!((back.transaction(), back.sequence()), (300, 1 << 40));
        assert_eq!(RowBatch::default().encode_to_vec(), Plain::default().encode_to_vec());
    }

    #[test]
    fn a_message_that_is_cut_short_or_of_other_types_is_refused() {
        let bytes = both().0.encode_to_vec();
        for len in 0..400 {
            let whole = RowBatch::decode(&bytes[..len]);
            let plain = Plain::decode(&bytes[..len]);
            assert_eq!(whole.is_ok(), plain.is_ok(), "{len} bytes");
        }
        // A row with the type of a number, a row whose key has it, and a row longer than the
        // message.
        for wrong in [&[0x08, 1][..], &[0x0a, 2, 0x08, 1], &[0x0a, 0xff, 0xff, 0xff, 0xff, 15]] {
            assert!(RowBatch::decode(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn fields_of_later_versions_are_passed_over() {
        let bytes = [0x0a, 5, 0x0a, 1, b'k', 0x18, 9, 0x20, 7];
        let batch = RowBatch::decode(&bytes[..]).expect("a message");
        assert_eq!(batch.to_vec(), [(b"k".to_vec(), Vec::new())]);
    }
}
