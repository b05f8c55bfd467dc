//! Metadata: the last response of an origin about the object at an address. It is stored beside the
//! chunks, so that they can be read while the origin is unavailable.

use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::key::{Description, Key};
use crate::layout::metadata as at;
use crate::put::Stored;

/// The last response of an origin about the object at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The key of the blocks of the version that the origin has: address, validator and length.
    pub key: Key,
    /// Its `ETag`, with its quotes.
    pub etag: Option<String>,
    /// Its `Last-Modified`, verbatim.
    pub last_modified: Option<String>,
    /// When it was last modified, in milliseconds since 1970.
    pub modified_ms: Option<u64>,
    /// Its `Content-Type`.
    pub content_type: Option<String>,
    /// Whether the origin supports range requests for it.
    pub ranges: bool,
    /// Seconds after the last check for which the origin allows this response to be used while it
    /// is unavailable (`stale-if-error` of RFC 5861).
    pub stale_if_error: Option<u64>,
    /// The time of the last response, in milliseconds since 1970.
    pub checked_ms: u64,
}

impl Metadata {
    /// Returns metadata that consist of a key of blocks and the time of the check.
    #[must_use]
    pub fn new(key: Key, checked_ms: u64) -> Self {
        let (etag, last_modified, modified_ms, content_type) = (None, None, None, None);
        let (ranges, stale_if_error) = (true, None);
        Self {
            key,
            etag,
            last_modified,
            modified_ms,
            content_type,
            ranges,
            stale_if_error,
            checked_ms,
        }
    }

    /// Returns whether both are equal except for the time of the check.
    #[must_use]
    pub fn has_same_content(&self, other: &Self) -> bool {
        let checked_ms = other.checked_ms;
        Self { checked_ms, ..self.clone() } == *other
    }

    /// Returns whether both describe the same version, perhaps with different block lengths.
    fn is_same_version(&self, other: &Self) -> bool {
        match (self.key.describe(), other.key.describe()) {
            (
                Description::Blocks { address, validator, object_len, .. },
                Description::Blocks { address: a, validator: v, object_len: len, .. },
            ) => (address, validator, object_len) == (a, v, len),
            _ => false,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut field = |tag: u8, value: &[u8]| {
            bytes.push(tag);
            bytes.extend(u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend(value);
        };
        field(at::KEY, &self.key.label);
        field(at::CHECKED, &self.checked_ms.to_le_bytes());
        field(at::RANGES, &[u8::from(self.ranges)]);
        let texts = [
            (at::ETAG, &self.etag),
            (at::LAST_MODIFIED, &self.last_modified),
            (at::CONTENT_TYPE, &self.content_type),
        ];
        for (tag, text) in texts {
            if let Some(text) = text {
                field(tag, text.as_bytes());
            }
        }
        let numbers = [(at::MODIFIED, self.modified_ms), (at::STALE_IF_ERROR, self.stale_if_error)];
        for (tag, number) in numbers {
            if let Some(number) = number {
                field(tag, &number.to_le_bytes());
            }
        }
        bytes
    }

    /// Decodes metadata, skipping fields with unknown tags. Returns `None` if it is damaged.
    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let (mut key, mut checked_ms) = (None, None);
        let mut found = Self::new(Key::found(&[]), 0);
        while let Some((&tag, rest)) = bytes.split_first() {
            let (len, rest) = rest.split_at_checked(4)?;
            let len = u32::from_le_bytes(len.try_into().ok()?);
            let (value, rest) = rest.split_at_checked(len as usize)?;
            bytes = rest;
            let text = || String::from_utf8(value.to_vec()).ok();
            let number = || Some(u64::from_le_bytes(value.try_into().ok()?));
            match tag {
                at::KEY => key = Some(Key::found(value)),
                at::CHECKED => checked_ms = number(),
                at::RANGES => found.ranges = value != [0],
                at::ETAG => found.etag = text(),
                at::LAST_MODIFIED => found.last_modified = text(),
                at::CONTENT_TYPE => found.content_type = text(),
                at::MODIFIED => found.modified_ms = number(),
                at::STALE_IF_ERROR => found.stale_if_error = number(),
                _ => {}
            }
        }
        let key = key.filter(|key| matches!(key.describe(), Description::Blocks { .. }))?;
        Some(Self { key, checked_ms: checked_ms?, ..found })
    }
}

/// Metadata are stored alternately in two chunks, so that a crash or a full disk during a
/// replacement loses nothing.
const COPIES: u64 = 2;

impl Chunks {
    /// Returns the last response of the origin about the object at an address, if the cache has it.
    pub fn metadata(&self, address: &str) -> Option<Metadata> {
        let key = Key::metadata(address).ok()?;
        self.copies(&key).into_iter().map(|(_, found)| found).max_by_key(|found| found.checked_ms)
    }

    /// Replaces the stored response of the origin about the object at the address of the key. A pin
    /// of the address moves to the version that the key identifies.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Key`] if the key is not a key of blocks, and errors as [`Chunks::put`]
    /// does.
    pub fn put_metadata(&self, metadata: &Metadata) -> Result<Stored> {
        let Description::Blocks { address, .. } = metadata.key.describe() else {
            let found = "a key of another kind".to_owned();
            return Err(Error::Key { expected: "a key of blocks", found });
        };
        let key = Key::metadata(&address)?;
        let copies = self.copies(&key);
        let newest = copies.iter().max_by_key(|(_, found)| found.checked_ms);
        let free = newest.map_or(0, |(number, _)| (number + 1) % COPIES);
        let before = newest.map(|(_, found)| found);
        self.segments.remove(&key.id(free));
        let bytes = metadata.encode();
        let stored = self.put(&key, free..free + 1, &[0, bytes.len() as u64], &bytes);
        if before.is_none_or(|before| before.key != metadata.key) {
            let other = before.filter(|before| before.is_same_version(metadata));
            let mut names = vec![key.name, metadata.key.name];
            names.extend(other.map(|other| other.key.name));
            self.segments.move_pin(key.name, &names)?;
        }
        stored
    }

    /// Returns the stored copies, with their chunk numbers.
    fn copies(&self, key: &Key) -> Vec<(u64, Metadata)> {
        let copy = |number: u64| {
            let read = self.get(key, number..number + 1).ok()?.found()?;
            Some((number, Metadata::decode(&read.data)?))
        };
        (0..COPIES).filter_map(copy).collect()
    }

    /// Removes metadata if it describes this version.
    pub(crate) fn remove_metadata_of(&self, version: &Key) {
        let Some(key) = version.address().and_then(|address| Key::metadata(&address).ok()) else {
            return;
        };
        if self.copies(&key).iter().any(|(_, found)| found.key == *version) {
            (0..COPIES).for_each(|number| self.segments.remove(&key.id(number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        Metadata {
            etag: Some("\"e\"".to_owned()),
            modified_ms: Some(5),
            content_type: Some("text/plain".to_owned()),
            ranges: false,
            stale_if_error: Some(60),
            ..Metadata::new(Key::blocks("http://host/a", "\"e\"", 10, 5).expect("a key"), 7)
        }
    }

    #[test]
    fn metadata_are_decoded_as_they_were_encoded() {
        let original = metadata();
        assert_eq!(Metadata::decode(&original.encode()), Some(original.clone()));
        let unknown = [&original.encode()[..], &[200, 2, 0, 0, 0, 1, 2]].concat();
        assert_eq!(Metadata::decode(&unknown), Some(original));
    }

    #[test]
    fn metadata_that_are_cut_off_or_of_no_key_are_none() {
        let bytes = metadata().encode();
        let key_len = 5 + metadata().key.label.len();
        for len in 0..bytes.len() {
            if let Some(found) = Metadata::decode(&bytes[..len]) {
                assert!(len >= key_len + 13, "{len}: {found:?}");
                assert_eq!((found.key, found.checked_ms), (metadata().key, 7));
            }
        }
        let named = Metadata { key: Key::named("n").expect("a key"), ..metadata() };
        assert_eq!(Metadata::decode(&named.encode()), None);
    }
}
