//! The encoding of an item in a segment: header, key, value.
//!
//! Most items have the short header of two bytes:
//!
//! | bits | short | long |
//! |---|---|---|
//! | 0 | 0 | 1 |
//! | 1 | the expiry follows, 3 bytes | the expiry follows, 6 bytes |
//! | 2 | key length, up to 63 (bits 2 to 7) | flags of the client follow, 4 bytes |
//! | 3 | | a number for compare-and-set follows, 8 bytes |
//! | 4 and 5 | | protocol bits |
//! | 6 | | the identifier of the record on disk follows, 8 bytes |
//! | 7 | | the value is compressed |
//! | 8 to 15 | value length, up to 255 | 0 |
//!
//! In a long header, the lengths follow these two bytes: 3 bytes for the key, 4 for the value. Then
//! come expiry, flags, the number for compare-and-set and the identifier of the record. All numbers
//! are little-endian. A short expiry is in milliseconds relative to the segment's base, one of 6
//! bytes is in milliseconds since the Unix epoch.

use crate::records::Records;
use std::ops::Range;

const LONG: u16 = 1;
const EXPIRES: u16 = 1 << 1;
const KEY_SHIFT: u32 = 2;
const VALUE_SHIFT: u32 = 8;
const FLAGS: u16 = 1 << 2;
const CAS: u16 = 1 << 3;
const PROTOCOL_BITS_SHIFT: u32 = 4;
const RECORD: u16 = 1 << 6;
const COMPRESSED: u16 = 1 << 7;

const HEADER_LEN: usize = 2;
const KEY_LEN_LEN: usize = 3;
const VALUE_LEN_LEN: usize = 4;
const LENGTHS_LEN: usize = KEY_LEN_LEN + VALUE_LEN_LEN;
const SHORT_EXPIRY_LEN: usize = 3;
/// Minimum bytes of a long header. A short header has fewer.
const MIN_LONG_HEADER_LEN: usize = HEADER_LEN + LENGTHS_LEN;
const _: () = assert!(HEADER_LEN + SHORT_EXPIRY_LEN < MIN_LONG_HEADER_LEN);
const EXPIRY_LEN: usize = 6;
const FLAGS_LEN: usize = 4;
const CAS_LEN: usize = 8;
const RECORD_LEN: usize = 8;

/// Maximum of a short expiry, in milliseconds after the segment's base.
const MAX_SHORT_EXPIRY_MS: u64 = (1 << (8 * SHORT_EXPIRY_LEN)) - 1;

/// Metadata of an item: everything but key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// Milliseconds since the Unix epoch.
    pub(crate) expires_ms: Option<u64>,
    pub(crate) flags: u32,
    pub(crate) cas: Option<u64>,
    pub(crate) protocol_bits: u8,
    /// The identifier of a record on disk that has the same content.
    pub(crate) record: Option<u64>,
    pub(crate) is_compressed: bool,
}

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) metadata: Metadata,
    /// Bytes before the key.
    key_start: usize,
    key_len: usize,
    value_len: usize,
}

/// Decodes a little-endian number of `LEN` bytes and advances `at`.
fn number<const LEN: usize>(bytes: &[u8], at: &mut usize) -> u64 {
    let mut word = [0; 8];
    word[..LEN].copy_from_slice(&bytes[*at..*at + LEN]);
    *at += LEN;
    u64::from_le_bytes(word)
}

impl Header {
    /// Maximum bytes of a header.
    pub(crate) const MAX_LEN: usize =
        HEADER_LEN + LENGTHS_LEN + EXPIRY_LEN + FLAGS_LEN + CAS_LEN + RECORD_LEN;

    /// Maximum of a short expiry, in milliseconds after the segment's base.
    pub(crate) const MAX_SHORT_EXPIRY_MS: u64 = MAX_SHORT_EXPIRY_MS;

    /// Returns the header of an item to be written into a segment with this base.
    #[inline]
    pub(crate) fn new(key_len: usize, value_len: usize, metadata: Metadata, base_ms: u64) -> Self {
        let mut header = Self { metadata, key_start: 0, key_len, value_len };
        header.key_start = if header.is_short(base_ms) {
            HEADER_LEN + if metadata.expires_ms.is_some() { SHORT_EXPIRY_LEN } else { 0 }
        } else {
            HEADER_LEN
                + LENGTHS_LEN
                + if metadata.expires_ms.is_some() { EXPIRY_LEN } else { 0 }
                + if metadata.flags != 0 { FLAGS_LEN } else { 0 }
                + if metadata.cas.is_some() { CAS_LEN } else { 0 }
                + if metadata.record.is_some() { RECORD_LEN } else { 0 }
        };
        header
    }

    fn is_short(&self, base_ms: u64) -> bool {
        let Metadata { expires_ms, flags, cas, protocol_bits, record, is_compressed } =
            self.metadata;
        let short = |at: u64| at >= base_ms && at - base_ms <= MAX_SHORT_EXPIRY_MS;
        self.key_len < 64
            && self.value_len < 256
            && (flags, cas, protocol_bits, record) == (0, None, 0, None)
            && !is_compressed
            && expires_ms.is_none_or(short)
    }

    /// Returns the length of the item if it has this key. `bytes` returns the first bytes of the
    /// item.
    #[inline]
    pub(crate) fn len_if_key<'b>(bytes: impl Fn(usize) -> &'b [u8], key: &[u8]) -> Option<usize> {
        let word = bytes(HEADER_LEN);
        let word = u16::from_le_bytes([word[0], word[1]]);
        if word & LONG != 0 {
            return Self::len_if_long(word, bytes, key);
        }
        let key_start = HEADER_LEN + if word & EXPIRES != 0 { SHORT_EXPIRY_LEN } else { 0 };
        let len = usize::from(word >> KEY_SHIFT & 63);
        let is_same = len == key.len() && keys_equal(&bytes(key_start + len)[key_start..], key);
        is_same.then_some(key_start + len + usize::from(word >> VALUE_SHIFT))
    }

    fn len_if_long<'b>(word: u16, bytes: impl Fn(usize) -> &'b [u8], key: &[u8]) -> Option<usize> {
        let header = Self::read_long(word, &bytes);
        (&bytes(header.key().end)[header.key_start..] == key).then_some(header.len())
    }

    /// Decodes the header of an item. `bytes` returns as many of the first bytes of the item as
    /// requested; bytes behind the item may be in use by a writer. `base_ms` returns the segment's
    /// base.
    #[inline(always)]
    pub(crate) fn read<'b>(
        bytes: impl Fn(usize) -> &'b [u8],
        base_ms: impl FnOnce() -> u64,
    ) -> Self {
        let word = bytes(HEADER_LEN);
        let word = u16::from_le_bytes([word[0], word[1]]);
        if word & LONG != 0 {
            return Self::read_long(word, bytes);
        }
        let mut metadata = Metadata::default();
        let mut at = HEADER_LEN;
        if word & EXPIRES != 0 {
            let bytes = bytes(HEADER_LEN + SHORT_EXPIRY_LEN);
            metadata.expires_ms = Some(base_ms() + number::<SHORT_EXPIRY_LEN>(bytes, &mut at));
        }
        Self {
            metadata,
            key_start: at,
            key_len: usize::from(word >> KEY_SHIFT & 63),
            value_len: usize::from(word >> VALUE_SHIFT),
        }
    }

    fn read_long<'b>(word: u16, bytes: impl Fn(usize) -> &'b [u8]) -> Self {
        let len = |flag: u16, len: usize| if word & flag != 0 { len } else { 0 };
        let expires_len = len(EXPIRES, EXPIRY_LEN);
        let options_len =
            expires_len + len(FLAGS, FLAGS_LEN) + len(CAS, CAS_LEN) + len(RECORD, RECORD_LEN);
        let bytes = bytes(HEADER_LEN + LENGTHS_LEN + options_len);
        let mut at = HEADER_LEN;
        let key_len = number::<KEY_LEN_LEN>(bytes, &mut at) as usize;
        let value_len = number::<VALUE_LEN_LEN>(bytes, &mut at) as usize;
        let expires_ms = (word & EXPIRES != 0).then(|| number::<EXPIRY_LEN>(bytes, &mut at));
        let flags = if word & FLAGS != 0 { number::<FLAGS_LEN>(bytes, &mut at) as u32 } else { 0 };
        let cas = (word & CAS != 0).then(|| number::<CAS_LEN>(bytes, &mut at));
        let record = (word & RECORD != 0).then(|| number::<RECORD_LEN>(bytes, &mut at));
        let protocol_bits = (word >> PROTOCOL_BITS_SHIFT) as u8 & 3;
        let is_compressed = word & COMPRESSED != 0;
        Self {
            metadata: Metadata { expires_ms, flags, cas, protocol_bits, record, is_compressed },
            key_start: at,
            key_len,
            value_len,
        }
    }

    /// Returns the length of the item in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.key_start + self.key_len + self.value_len
    }

    /// Returns the range of the key in the item.
    #[inline]
    pub(crate) fn key(&self) -> Range<usize> {
        self.key_start..self.key_start + self.key_len
    }

    /// Returns the range of the value in the item.
    #[inline]
    pub(crate) fn value(&self) -> Range<usize> {
        let start = self.key_start + self.key_len;
        start..start + self.value_len
    }

    /// Writes header and key to the start of an item's bytes. Returns the bytes for the value.
    #[inline]
    pub(crate) fn write<'b>(&self, out: &'b mut [u8], key: &[u8], base_ms: u64) -> &'b mut [u8] {
        let (header, rest) = out.split_at_mut(self.key_start);
        if self.key_start < MIN_LONG_HEADER_LEN {
            let expires = u16::from(self.metadata.expires_ms.is_some()) << 1;
            let word = expires
                | (self.key_len as u16) << KEY_SHIFT
                | (self.value_len as u16) << VALUE_SHIFT;
            header[..HEADER_LEN].copy_from_slice(&word.to_le_bytes());
            if let Some(at) = self.metadata.expires_ms {
                let delta = (at - base_ms).to_le_bytes();
                header[HEADER_LEN..].copy_from_slice(&delta[..SHORT_EXPIRY_LEN]);
            }
        } else {
            self.write_long(header);
        }
        let (to, value) = rest.split_at_mut(self.key_len);
        to.copy_from_slice(key);
        value
    }

    fn write_long(&self, header: &mut [u8]) {
        let Metadata { expires_ms, flags, cas, protocol_bits, record, is_compressed } =
            self.metadata;
        let mut word = LONG | u16::from(protocol_bits) << PROTOCOL_BITS_SHIFT;
        if is_compressed {
            word |= COMPRESSED;
        }
        let mut at = HEADER_LEN;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&(self.key_len as u32).to_le_bytes()[..KEY_LEN_LEN]);
        put(&(self.value_len as u32).to_le_bytes());
        if let Some(expires) = expires_ms {
            word |= EXPIRES;
            put(&expires.to_le_bytes()[..EXPIRY_LEN]);
        }
        if flags != 0 {
            word |= FLAGS;
            put(&flags.to_le_bytes());
        }
        if let Some(cas) = cas {
            word |= CAS;
            put(&cas.to_le_bytes());
        }
        if let Some(record) = record {
            word |= RECORD;
            put(&record.to_le_bytes());
        }
        header[..HEADER_LEN].copy_from_slice(&word.to_le_bytes());
    }
}

/// Returns whether two keys of the same length are equal. Most keys have 8 to 16 bytes, and
/// comparing two words is faster than a call.
#[inline]
fn keys_equal(one: &[u8], other: &[u8]) -> bool {
    let ends = |key: &[u8]| Some((*key.first_chunk::<8>()?, *key.last_chunk::<8>()?));
    if (8..=16).contains(&one.len()) { ends(one) == ends(other) } else { one == other }
}

/// An identifier that no session has, for items that no guard keeps.
pub(crate) const NO_SESSION: u64 = u64::MAX;

/// An item that was found. Neither the item nor its memory changes while the guard exists under
/// which it was read, or the item reference from which it was taken.
#[derive(Clone, Copy, Debug)]
pub struct Item<'g> {
    pub(crate) bytes: &'g [u8],
    pub(crate) header: Header,
    pub(crate) frequency: u32,
    /// Identifier of the session under whose guard it was read; [`NO_SESSION`] for the item of an
    /// item reference, and for one with another value.
    pub(crate) session: u64,
}

impl<'g> Item<'g> {
    /// Returns the key.
    #[inline]
    pub fn key(&self) -> &'g [u8] {
        &self.bytes[self.header.key()]
    }

    /// Returns whether the item has this key.
    #[inline]
    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        self.header.key_len == key.len() && keys_equal(self.key(), key)
    }

    /// Returns the value.
    #[inline]
    pub fn value(&self) -> &'g [u8] {
        &self.bytes[self.header.value()]
    }

    /// Returns the time at which the item expires, in milliseconds since the Unix epoch; `None` if
    /// it does not expire.
    #[inline]
    pub fn expires_ms(&self) -> Option<u64> {
        self.header.metadata.expires_ms
    }

    /// Returns the client's flags, 0 if it set none. memcached clients store the type of the value
    /// there.
    #[inline]
    pub fn flags(&self) -> u32 {
        self.header.metadata.flags
    }

    /// Returns the number for compare-and-set, or `None` if the item has none yet: see
    /// [`Guard::get_with_cas`](crate::Guard::get_with_cas).
    #[inline]
    pub fn cas(&self) -> Option<u64> {
        self.header.metadata.cas
    }

    /// Returns the two bits of state that the protocol keeps with the item, such as "stale" of
    /// memcached's meta commands.
    #[inline]
    pub fn protocol_bits(&self) -> u8 {
        self.header.metadata.protocol_bits
    }

    /// Returns whether the item has a valid record on disk.
    pub fn has_record(&self, records: &dyn Records) -> bool {
        self.header.metadata.record.is_some_and(|id| records.place(id).is_some())
    }

    /// Returns whether the value was stored as [compressed](crate::Write::compressed).
    #[inline]
    pub fn is_compressed(&self) -> bool {
        self.header.metadata.is_compressed
    }

    /// Returns whether the item was returned by [`with_value`](Self::with_value) or by an item
    /// reference, so that it is not an item of a guard.
    #[inline]
    pub fn is_detached(&self) -> bool {
        self.session == NO_SESSION
    }

    /// Returns this item with another value that is not compressed, such as the decompressed one.
    /// `key_and_value` begins with the key of this item, and the rest is the value.
    ///
    /// # Panics
    ///
    /// If `key_and_value` is shorter than the key.
    pub fn with_value<'b>(&self, key_and_value: &'b [u8]) -> Item<'b> {
        let key_len = self.header.key_len;
        let value_len = key_and_value.len().checked_sub(key_len).expect("the key and a value");
        let metadata = Metadata { is_compressed: false, ..self.header.metadata };
        let header = Header { metadata, key_start: 0, key_len, value_len };
        Item { bytes: key_and_value, header, frequency: self.frequency, session: NO_SESSION }
    }

    /// Returns how often the item was read recently, from 0 to 3. Eviction lowers the number.
    #[inline]
    pub fn frequency(&self) -> u32 {
        self.frequency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(key: &[u8], value: &[u8], metadata: Metadata, base_ms: u64) -> usize {
        let header = Header::new(key.len(), value.len(), metadata, base_ms);
        let mut bytes = vec![0xaa; header.len() + 1];
        let out = &mut bytes[..header.len()];
        header.write(out, key, base_ms).copy_from_slice(value);
        let read = Header::read(|len| &bytes[..len], || base_ms);
        assert_eq!(read, header);
        assert_eq!((&bytes[read.key()], &bytes[read.value()]), (key, value));
        assert_eq!(bytes[header.len()], 0xaa);
        header.len() - key.len() - value.len()
    }

    #[test]
    fn items_are_decoded_as_encoded_and_short_headers_are_used() {
        let expires = |at| Metadata { expires_ms: Some(at), ..Metadata::default() };
        let now = 1_700_000_000_000;
        assert_eq!(round_trip(b"", b"", Metadata::default(), now), 2);
        assert_eq!(round_trip(&[b'k'; 63], &[b'v'; 255], Metadata::default(), now), 2);
        assert_eq!(round_trip(b"key", b"value", expires(now + MAX_SHORT_EXPIRY_MS), now), 5);
        assert_eq!(round_trip(&[b'k'; 64], b"", Metadata::default(), now), 9);
        assert_eq!(round_trip(b"", &[b'v'; 256], Metadata::default(), now), 9);
        assert_eq!(round_trip(b"key", b"value", expires(now + MAX_SHORT_EXPIRY_MS + 1), now), 15);
        assert_eq!(round_trip(b"key", b"value", expires(now - 1), now), 15);
        let record = Metadata { record: Some(1 << 60), ..Metadata::default() };
        assert_eq!(round_trip(b"key", b"value", record, now), 17);
        let compressed = Metadata { is_compressed: true, ..Metadata::default() };
        assert_eq!(round_trip(b"key", b"value", compressed, now), 9);
        let all = Metadata {
            flags: 7,
            cas: Some(u64::MAX),
            protocol_bits: 3,
            record: Some(u64::MAX),
            is_compressed: true,
            ..expires(now)
        };
        assert_eq!(round_trip(&vec![0xff; 65_536], &vec![1; 100_000], all, now), Header::MAX_LEN);
    }

    #[test]
    fn an_item_with_another_value_keeps_the_rest() {
        let metadata = Metadata { flags: 7, is_compressed: true, ..Metadata::default() };
        let header = Header::new(3, 4, metadata, 0);
        let mut bytes = vec![0; header.len()];
        header.write(&mut bytes, b"key", 0).copy_from_slice(b"zstd");
        let item = Item { bytes: &bytes, header, frequency: 2, session: 1 };
        let plain = item.with_value(b"keythe value");
        assert_eq!((plain.key(), plain.value()), (&b"key"[..], &b"the value"[..]));
        assert_eq!((plain.flags(), plain.frequency()), (7, 2));
        assert!(item.is_compressed() && !plain.is_compressed());
        assert!(plain.is_detached() && !item.is_detached());
    }
}
