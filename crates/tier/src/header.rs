//! The header of an item file: one block.

use crate::checksum::checksum;
use crate::fields::{half, put_half, put_word, word};
use crate::layout::header as at;
use crate::layout::{BLOCK, VERSION};

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) number: u64,
    /// A random number: the seed of all checksums in the file.
    pub(crate) salt: u64,
    pub(crate) folder_salt: u64,
    /// When the file was created, in milliseconds since the Unix epoch.
    pub(crate) created_ms: u64,
}

impl Header {
    /// Encodes the header into a block.
    pub(crate) fn encode(self, block: &mut [u8]) {
        block.fill(0);
        block[at::MAGIC_AT..at::VERSION_AT].copy_from_slice(at::MAGIC);
        put_half(block, at::VERSION_AT, VERSION);
        put_word(block, at::NUMBER, self.number);
        put_word(block, at::SALT, self.salt);
        put_word(block, at::FOLDER_SALT, self.folder_salt);
        put_word(block, at::CREATED, self.created_ms);
        let check = checksum(&block[..at::CHECK], 0);
        put_word(block, at::CHECK, check);
    }

    /// Decodes a header and compares its number and the salt of its folder.
    ///
    /// # Errors
    ///
    /// Returns what was expected and what was found.
    pub(crate) fn decode(bytes: &[u8], number: u64, folder_salt: u64) -> Result<Self, String> {
        if bytes.len() < BLOCK {
            return Err(format!("expected a header of {BLOCK} bytes, found {}", bytes.len()));
        }
        if bytes[at::MAGIC_AT..at::VERSION_AT] != *at::MAGIC {
            return Err("expected the header of an item file, found another magic number".into());
        }
        if word(bytes, at::CHECK) != checksum(&bytes[..at::CHECK], 0) {
            return Err("expected the header of an item file, found another checksum".into());
        }
        let version = half(bytes, at::VERSION_AT);
        if version != VERSION {
            return Err(format!("expected version {VERSION}, found {version}"));
        }
        let header = Self {
            number: word(bytes, at::NUMBER),
            salt: word(bytes, at::SALT),
            folder_salt: word(bytes, at::FOLDER_SALT),
            created_ms: word(bytes, at::CREATED),
        };
        if header.number != number {
            return Err(format!("expected number {number}, found {}", header.number));
        }
        if header.folder_salt != folder_salt {
            return Err("expected a file of this folder, found one of another folder".into());
        }
        Ok(header)
    }
}
