//! What objects are called.

use crate::error::{Error, Result};
use crate::layout::{
    ADDRESS, BLOCKS, CONTENT, HASH, HASH_LEN, KIND, LABEL_MOST, METADATA, NAME, NAMED, blocks as at,
};
use nuthatch_segments::Id;
use xxhash_rust::xxh3::xxh3_128;

/// The key of an object: a label, which is kept with its chunks and compared whenever they are
/// read, and a hash of it, which they are found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub(crate) name: [u8; 16],
    pub(crate) label: Box<[u8]>,
}

/// What a label says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Described {
    /// A name that the user made up, for chunks of any lengths.
    Named(Vec<u8>),
    /// Blocks of one size.
    Blocks {
        /// The URL or path.
        address: String,
        /// What tells one version of it from another: an `ETag`, a version, a hash.
        validator: String,
        /// How many bytes the object has.
        object_len: u64,
        /// How many bytes a block has; the last one has the rest.
        block_len: u64,
    },
    /// One chunk, named by the BLAKE3 hash of its bytes.
    Content([u8; 32]),
    /// What an origin last said about the object at an address.
    Metadata {
        /// The URL or path.
        address: String,
    },
    /// A kind that this version does not know.
    Unknown,
}

/// Returns whether a label is that of metadata about an object, and not of its chunks.
pub(crate) fn is_metadata(label: &[u8]) -> bool {
    label.first() == Some(&METADATA)
}

impl Key {
    fn from_label(label: Vec<u8>) -> Result<Self> {
        if label.len() > LABEL_MOST {
            let found = format!("{} bytes", label.len());
            return Err(Error::Key { expected: "at most 16,384 bytes", found });
        }
        Ok(Self { name: xxh3_128(&label).to_le_bytes(), label: label.into() })
    }

    /// An object of chunks that have lengths of their own, by a name of up to 16,383 bytes.
    pub fn named(name: impl AsRef<[u8]>) -> Result<Self> {
        Self::from_label([&[NAMED], name.as_ref()].concat())
    }

    /// An object of blocks: see [`Chunks::blocks`](crate::Chunks::blocks).
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

    /// The chunk whose bytes have a BLAKE3 hash.
    #[must_use]
    pub fn content(hash: &[u8; 32]) -> Self {
        let label = [&[CONTENT], &hash[..]].concat();
        Self { name: xxh3_128(&label).to_le_bytes(), label: label.into() }
    }

    /// Returns the key of what an origin last said about the object at an address. Its name is also
    /// the group of a pin of the address.
    pub(crate) fn metadata(address: &str) -> Result<Self> {
        Self::from_label([&[METADATA], address.as_bytes()].concat())
    }

    /// Returns the address of an object of blocks.
    #[must_use]
    pub fn address(&self) -> Option<String> {
        match self.describe() {
            Described::Blocks { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Returns whether this is a key of metadata, which is not an object.
    pub(crate) fn is_metadata(&self) -> bool {
        is_metadata(&self.label)
    }

    /// The key of a label that was found.
    pub(crate) fn found(label: &[u8]) -> Self {
        Self { name: xxh3_128(label).to_le_bytes(), label: label.into() }
    }

    #[inline]
    pub(crate) fn id(&self, chunk: u64) -> Id {
        Id::new(self.name, chunk)
    }

    /// What the key says of its object.
    #[must_use]
    pub fn describe(&self) -> Described {
        let label = &self.label;
        match label.first() {
            Some(&NAMED) => Described::Named(label[NAME..].to_vec()),
            Some(&BLOCKS) => blocks_of(label).unwrap_or(Described::Unknown),
            Some(&CONTENT) => {
                let hash = label.get(HASH..HASH + HASH_LEN).and_then(|hash| hash.try_into().ok());
                hash.map_or(Described::Unknown, Described::Content)
            }
            Some(&METADATA) => {
                let address = String::from_utf8(label[ADDRESS..].to_vec());
                address.map_or(Described::Unknown, |address| Described::Metadata { address })
            }
            _ => Described::Unknown,
        }
    }
}

fn blocks_of(label: &[u8]) -> Option<Described> {
    let eight = |at: usize| Some(u64::from_le_bytes(label.get(at..at + 8)?.try_into().ok()?));
    let len = label.get(at::ADDRESS_LEN..at::ADDRESS)?.try_into().ok()?;
    let rest = label.get(at::ADDRESS..)?;
    let (address, validator) = rest.split_at_checked(u32::from_le_bytes(len) as usize)?;
    Some(Described::Blocks {
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
        assert_eq!(named.describe(), Described::Named(b"a name".to_vec()));
        let blocks = Key::blocks("http://a/b", "\"tag\"", 10, 4).expect("a key");
        let expected = Described::Blocks {
            address: "http://a/b".into(),
            validator: "\"tag\"".into(),
            object_len: 10,
            block_len: 4,
        };
        assert_eq!(blocks.describe(), expected);
        assert_eq!(Key::content(&[7; 32]).describe(), Described::Content([7; 32]));
        assert_eq!(Key::found(&[]).describe(), Described::Unknown);
        assert_eq!(Key::found(&blocks.label), blocks);
        for len in 0..at::ADDRESS {
            assert_eq!(Key::found(&blocks.label[..len]).describe(), Described::Unknown, "{len}");
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
        assert!(Key::named(vec![0; LABEL_MOST - 1]).is_ok());
        assert!(matches!(Key::named(vec![0; LABEL_MOST]), Err(Error::Key { .. })));
    }
}
