//! Records: one item each.

use crate::checksum::{Checksum, checksum};
use crate::error::{Error, Result};
use crate::fields::{half, put_half, put_word, word};
use crate::layout::record::{
    CHECK, DATABASE, FIELDS, HAS_CAS, HAS_CLIENT_FLAGS, HAS_EXPIRY, HASH, IS_COMPRESSED, KEY_LEN,
    KIND, KIND_BITS, MAX_FREQUENCY, MAX_HEAD_LEN, VALUE_LEN, VALUE_LEN_BITS,
};
use crate::layout::{MAX_KEY_LEN, MAX_VALUE_LEN, UNIT, entry};

/// The type of an item's value. This crate stores it and does not interpret it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kind(u8);

impl Kind {
    /// A string.
    pub const STRING: Self = Self(0);

    /// Returns the kind with a number, or `None` if the number is 16 or more.
    #[must_use]
    pub fn new(number: u8) -> Option<Self> {
        (number < 1 << KIND_BITS).then_some(Self(number))
    }

    /// Returns the number of the kind.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }
}

/// An item, to be written or as it was read. Key and value are borrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// The key, at most 65,535 bytes.
    pub key: &'a [u8],
    /// The value, at most 512 MiB.
    pub value: &'a [u8],
    /// The hash of the key, with the seed of the folder.
    pub hash: u64,
    /// The type of the value.
    pub kind: Kind,
    /// The number of the database.
    pub database: u8,
    /// The number of recent reads, at most 3. Higher numbers are stored as 3.
    pub frequency: u8,
    /// When the item expires, in milliseconds since the Unix epoch.
    pub expires_ms: Option<u64>,
    /// The number that a compare-and-swap compares.
    pub cas: Option<u64>,
    /// The flags that a memcached client stored with the item.
    pub client_flags: Option<u32>,
    /// Whether the value is compressed.
    pub is_compressed: bool,
}

/// The bytes of a record before the key.
pub(crate) struct Head {
    bytes: [u8; MAX_HEAD_LEN],
    len: usize,
}

impl Head {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseError {
    /// The record has `needed` bytes, according to its header, which is not checked yet.
    Short { needed: usize },
    /// The lengths are impossible, or the checksum differs.
    Damaged(&'static str),
}

impl<'a> Record<'a> {
    /// Returns the length of the encoded record: a multiple of [`UNIT`].
    pub(crate) fn encoded_len(&self) -> usize {
        (self.head_len() + self.key.len() + self.value.len()).next_multiple_of(UNIT)
    }

    /// Returns the bytes that the record takes in an item file, with its entry in the directory.
    #[must_use]
    pub fn stored_len(&self) -> u64 {
        (self.encoded_len() + entry::LEN) as u64
    }

    fn head_len(&self) -> usize {
        let cas = if self.cas.is_some() { 8 } else { 0 };
        let client_flags = if self.client_flags.is_some() { 4 } else { 0 };
        let expiry = if self.expires_ms.is_some() { 8 } else { 0 };
        FIELDS + expiry + cas + client_flags
    }

    /// Checks the lengths of key and value.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLong`].
    pub(crate) fn check_lengths(&self) -> Result<()> {
        let lengths =
            [("key", self.key.len(), MAX_KEY_LEN), ("value", self.value.len(), MAX_VALUE_LEN)];
        match lengths.into_iter().find(|(_, len, max)| len > max) {
            None => Ok(()),
            Some((what, len, max)) => {
                Err(Error::TooLong { what, len: len as u64, max: max as u64 })
            }
        }
    }

    /// Encodes the bytes before the key, with the checksum of the record.
    pub(crate) fn head(&self, seed: u64) -> Head {
        let mut head = self.head_without_check();
        let mut sum = Checksum::new(seed);
        for part in [&head.as_bytes()[HASH..], self.key, self.value] {
            sum.add(part);
        }
        put_word(&mut head.bytes, CHECK, sum.finish());
        head
    }

    fn head_without_check(&self) -> Head {
        let mut bytes = [0; MAX_HEAD_LEN];
        put_word(&mut bytes, HASH, self.hash);
        let frequency = u32::from(self.frequency.min(MAX_FREQUENCY)) << VALUE_LEN_BITS;
        put_half(&mut bytes, VALUE_LEN, self.value.len() as u32 | frequency);
        bytes[KEY_LEN..KIND].copy_from_slice(&(self.key.len() as u16).to_le_bytes());
        bytes[KIND] = self.kind.0;
        bytes[DATABASE] = self.database;
        let mut len = FIELDS;
        let optional = [(HAS_EXPIRY, self.expires_ms), (HAS_CAS, self.cas)];
        for (flag, word) in optional.into_iter().filter_map(|(flag, word)| Some((flag, word?))) {
            bytes[KIND] |= flag;
            put_word(&mut bytes, len, word);
            len += 8;
        }
        if let Some(client_flags) = self.client_flags {
            bytes[KIND] |= HAS_CLIENT_FLAGS;
            put_half(&mut bytes, len, client_flags);
            len += 4;
        }
        if self.is_compressed {
            bytes[KIND] |= IS_COMPRESSED;
        }
        Head { bytes, len }
    }

    /// Encodes the record into `out`, which has [`Record::encoded_len`] bytes.
    pub(crate) fn encode(&self, out: &mut [u8], seed: u64) {
        let head = self.head_without_check();
        let key_at = head.len;
        let value_at = key_at + self.key.len();
        let end = value_at + self.value.len();
        out[..key_at].copy_from_slice(head.as_bytes());
        out[key_at..value_at].copy_from_slice(self.key);
        out[value_at..end].copy_from_slice(self.value);
        out[end..].fill(0);
        let check = checksum(&out[HASH..end], seed);
        put_word(out, CHECK, check);
    }

    /// Decodes the record at the beginning of `bytes`, which may be longer, and compares its
    /// checksum.
    ///
    /// # Errors
    ///
    /// Returns the needed length if `bytes` is too short, and what is wrong with the record.
    pub(crate) fn decode(bytes: &'a [u8], seed: u64) -> std::result::Result<Self, ParseError> {
        if bytes.len() < FIELDS {
            return Err(ParseError::Short { needed: FIELDS });
        }
        let lengths = half(bytes, VALUE_LEN);
        let value_len = (lengths & ((1 << VALUE_LEN_BITS) - 1)) as usize;
        if value_len > MAX_VALUE_LEN {
            return Err(ParseError::Damaged("expected a value of at most 512 MiB, found more"));
        }
        let key_len = usize::from(bytes[KEY_LEN]) | usize::from(bytes[KEY_LEN + 1]) << 8;
        let flags = bytes[KIND];
        let has = |flag: u8| flags & flag != 0;
        let expiry_len = if has(HAS_EXPIRY) { 8 } else { 0 };
        let cas_at = FIELDS + expiry_len;
        let client_flags_at = cas_at + if has(HAS_CAS) { 8 } else { 0 };
        let key_at = client_flags_at + if has(HAS_CLIENT_FLAGS) { 4 } else { 0 };
        let value_at = key_at + key_len;
        let end = value_at + value_len;
        if bytes.len() < end {
            return Err(ParseError::Short { needed: end });
        }
        if word(bytes, CHECK) != checksum(&bytes[HASH..end], seed) {
            return Err(ParseError::Damaged("expected a record, found another checksum"));
        }
        Ok(Self {
            key: &bytes[key_at..value_at],
            value: &bytes[value_at..end],
            hash: word(bytes, HASH),
            kind: Kind(flags & ((1 << KIND_BITS) - 1)),
            database: bytes[DATABASE],
            frequency: (lengths >> VALUE_LEN_BITS) as u8,
            expires_ms: has(HAS_EXPIRY).then(|| word(bytes, FIELDS)),
            cas: has(HAS_CAS).then(|| word(bytes, cas_at)),
            client_flags: has(HAS_CLIENT_FLAGS).then(|| half(bytes, client_flags_at)),
            is_compressed: has(IS_COMPRESSED),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Record<'static> = Record {
        key: b"a key",
        value: b"the value",
        hash: 0x0123_4567_89AB_CDEF,
        kind: Kind(5),
        database: 7,
        frequency: 2,
        expires_ms: Some(1_700_000_000_000),
        cas: Some(42),
        client_flags: Some(0xDEAD_BEEF),
        is_compressed: true,
    };

    fn encoded(record: &Record<'_>, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0xFF; record.encoded_len()];
        record.encode(&mut bytes, seed);
        bytes
    }

    #[test]
    fn records_are_decoded_as_they_were_encoded() {
        let plain = Record { key: b"k", ..Record::default() };
        for record in [FULL, plain, Record { cas: None, ..FULL }, Record { frequency: 0, ..FULL }] {
            let bytes = encoded(&record, 9);
            assert_eq!(Record::decode(&bytes, 9), Ok(record));
            assert_eq!(record.head(9).as_bytes(), &bytes[..record.head_len()]);
        }
    }

    #[test]
    fn a_record_of_another_place_is_damaged() {
        let bytes = encoded(&FULL, 1);
        assert!(matches!(Record::decode(&bytes, 2), Err(ParseError::Damaged(_))));
    }

    #[test]
    fn any_flipped_bit_of_a_record_is_found() {
        let bytes = encoded(&FULL, 3);
        let end = FULL.head_len() + FULL.key.len() + FULL.value.len();
        for bit in 0..end * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::decode(&flipped, 3).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_short_record_says_how_long_it_is() {
        let bytes = encoded(&FULL, 3);
        let end = FULL.head_len() + FULL.key.len() + FULL.value.len();
        for len in 0..end {
            let needed = if len < FIELDS { FIELDS } else { end };
            assert_eq!(Record::decode(&bytes[..len], 3), Err(ParseError::Short { needed }));
        }
    }

    #[test]
    fn keys_and_values_have_a_maximum_length() {
        let long = vec![0; MAX_KEY_LEN + 1];
        let record = Record { key: &long, ..Record::default() };
        let text = record.check_lengths().expect_err("too long").to_string();
        assert_eq!(text, "key: expected at most 65535 bytes, found 65536");
        let record = Record { key: &long[1..], ..Record::default() };
        record.check_lengths().expect("a key of the maximum length");
    }
}
