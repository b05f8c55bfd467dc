//! Keys of objects.

use crate::error::{Error, Result};
use crate::layout::{
    ADDRESS, BLOCKS, CONTENT, HASH, HASH_LEN, KIND, MAX_LABEL_LEN, METADATA, NAME, NAMED,
    blocks as at,
};
use nuthatch_segments::Id;
use xxhash_rust::xxh3::xxh3_128;

/// The key of an object: a label, which is stored with its chunks and compared on each read, and a
/// hash of the label, under which they are found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub(crate) name: [u8; 16],
    pub(crate) label: Box<[u8]>,
}

/// The content of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Description {
    /// A name that the caller chose, for chunks of any lengths.
    Named(Vec<u8>),
    /// Blocks of one length.
    Blocks {
        /// The URL or path.
        address: String,
        /// What distinguishes versions of the object: an `ETag`, a version, a hash.
        validator: String,
        /// The length of the object in bytes.
        object_len: u64,
        /// The length of all blocks but the last in bytes.
        block_len: u64,
    },
    /// One chunk, named by the BLAKE3 hash of its bytes.
    Content([u8; 32]),
    /// The last response of an origin about the object at an address.
    Metadata {
        /// The URL or path.
        address: String,
    },
    /// A kind that this version does not know.
    Unknown,
}

/// Returns whether a label belongs to metadata of an object, not to its chunks.
pub(crate) fn is_metadata(label: &[u8]) -> bool {
    label.first() == Some(&METADATA)
}

impl Key {
    fn from_label(label: Vec<u8>) -> Result<Self> {
        if label.len() > MAX_LABEL_LEN {
            let found = format!("{} bytes", label.len());
            return Err(Error::Key { expected: "at most 16,384 bytes", found });
        }
        Ok(Self { name: xxh3_128(&label).to_le_bytes(), label: label.into() })
    }

    /// Returns the key of an object of chunks with any lengths, by a name of up to 16,383 bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Key`] if the name is longer.
    pub fn named(name: impl AsRef<[u8]>) -> Result<Self> {
        Self::from_label([&[NAMED], name.as_ref()].concat())
    }

    /// Returns the key of an object of blocks: see [`Chunks::blocks`](crate::Chunks::blocks).
    pub(crate) fn blocks(
        address: &str,
        validator: &str,
        object_len: u64,
        block_len: u64,
    ) -> Result<Self> {
        let mut label = vec![0; at::ADDRESS];
        label[KIND] = BLOCKS;
        label[at::BLOCK_LEN..at::OBJECT_LEN].copy_from_slice(&block_len.to_le_bytes());
        label[at::OBJECT_LEN..at::ADDRESS_LEN].copy_from_slice(&object_len.to_le_bytes());
        let len = u32::try_from(address.len()).unwrap_or(u32::MAX);
        label[at::ADDRESS_LEN..at::ADDRESS].copy_from_slice(&len.to_le_bytes());
        label.extend(address.bytes().chain(validator.bytes()));
        Self::from_label(label)
    }

    /// Returns the key of the chunk with a BLAKE3 hash.
    #[must_use]
    pub fn content(hash: &[u8; 32]) -> Self {
        let label = [&[CONTENT], &hash[..]].concat();
        Self { name: xxh3_128(&label).to_le_bytes(), label: label.into() }
    }

    /// Returns the key of the metadata of an address. Its name is also the group of a pin of the
    /// address.
    pub(crate) fn metadata(address: &str) -> Result<Self> {
        Self::from_label([&[METADATA], address.as_bytes()].concat())
    }

    /// Returns the address of an object of blocks.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        match self.describe() {
            Description::Blocks { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Returns whether this is a key of metadata, which is not an object.
    pub(crate) fn is_metadata(&self) -> bool {
        is_metadata(&self.label)
    }

    /// Returns the key for a label that was found in the cache.
    pub(crate) fn found(label: &[u8]) -> Self {
        Self { name: xxh3_128(label).to_le_bytes(), label: label.into() }
    }

    #[inline]
    pub(crate) fn id(&self, chunk: u64) -> Id {
        Id::new(self.name, chunk)
    }

    /// Returns the content of the label.
    #[must_use]
    pub fn describe(&self) -> Description {
        let label = &self.label;
        match label.first() {
            Some(&NAMED) => Description::Named(label[NAME..].to_vec()),
            Some(&BLOCKS) => blocks_of(label).unwrap_or(Description::Unknown),
            Some(&CONTENT) => {
                let hash = label.get(HASH..HASH + HASH_LEN).and_then(|hash| hash.try_into().ok());
                hash.map_or(Description::Unknown, Description::Content)
            }
            Some(&METADATA) => {
                let address = String::from_utf8(label[ADDRESS..].to_vec());
                address.map_or(Description::Unknown, |address| Description::Metadata { address })
            }
            _ => Description::Unknown,
        }
    }
}

fn blocks_of(label: &[u8]) -> Option<Description> {
    let eight = |at: usize| Some(u64::from_le_bytes(label.get(at..at + 8)?.try_into().ok()?));
    let len = label.get(at::ADDRESS_LEN..at::ADDRESS)?.try_into().ok()?;
    let rest = label.get(at::ADDRESS..)?;
    let (address, validator) = rest.split_at_checked(u32::from_le_bytes(len) as usize)?;
    Some(Description::Blocks {
        address: String::from_utf8(address.to_vec()).ok()?,
        validator: String::from_utf8(validator.to_vec()).ok()?,
        object_len: eight(at::OBJECT_LEN)?,
        block_len: eight(at::BLOCK_LEN)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_what_they_were_made_of() {
        let named = Key::named("a name").expect("a key");
        assert_eq!(named.describe(), Description::Named(b"a name".to_vec()));
        let blocks = Key::blocks("http://a/b", "\"tag\"", 10, 4).expect("a key");
        let expected = Description::Blocks {
            address: "http://a/b".into(),
            validator: "\"tag\"".into(),
            object_len: 10,
            block_len: 4,
        };
        assert_eq!(blocks.describe(), expected);
        assert_eq!(Key::content(&[7; 32]).describe(), Description::Content([7; 32]));
        assert_eq!(Key::found(&[]).describe(), Description::Unknown);
        assert_eq!(Key::found(&blocks.label), blocks);
        for len in 0..at::ADDRESS {
            assert_eq!(Key::found(&blocks.label[..len]).describe(), Description::Unknown, "{len}");
        }
    }

    #[test]
    fn another_version_length_or_block_is_another_object() {
        let key = |address, validator, object_len, block_len| {
            Key::blocks(address, validator, object_len, block_len).expect("a key").name
        };
        let names = [
            key("ab", "c", 10, 4),
            key("a", "bc", 10, 4),
            key("ab", "d", 10, 4),
            key("ab", "c", 11, 4),
            key("ab", "c", 10, 5),
            Key::named("ab").expect("a key").name,
        ];
        let distinct: std::collections::BTreeSet<_> = names.into_iter().collect();
        assert_eq!(distinct.len(), 6);
    }

    #[test]
    fn a_key_that_is_too_long_is_refused() {
        assert!(Key::named(vec![0; MAX_LABEL_LEN - 1]).is_ok());
        assert!(matches!(Key::named(vec![0; MAX_LABEL_LEN]), Err(Error::Key { .. })));
    }
}
