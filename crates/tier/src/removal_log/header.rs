//! The header of a removal log: one block.

use crate::checksum::checksum;
use crate::fields::{half, put_half, put_word, word};
use crate::layout::removed as at;
use crate::layout::{BLOCK, VERSION};
use crate::removal_log::entry::{Chain, MAX_BOUND};

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) number: u64,
    /// A random number, with which the chain of the entries begins.
    pub(crate) salt: u64,
    pub(crate) folder_salt: u64,
    /// All ids in the logs before this one are lower.
    pub(crate) bound: u64,
    /// Where the entries of the log before this one end, if that log was valid.
    pub(crate) previous: Option<End>,
}

/// The end of the entries of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) offset: u64,
    pub(crate) chain: Chain,
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
        put_word(block, at::BOUND, self.bound);
        if let Some(previous) = self.previous {
            put_word(block, at::PREVIOUS_END, previous.offset);
            put_word(block, at::PREVIOUS_CHAIN, previous.chain.word());
        }
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
            return Err("expected the header of a removal log, found another magic number".into());
        }
        if word(bytes, at::CHECK) != checksum(&bytes[..at::CHECK], 0) {
            return Err("expected the header of a removal log, found another checksum".into());
        }
        let version = half(bytes, at::VERSION_AT);
        if version != VERSION {
            return Err(format!("expected version {VERSION}, found {version}"));
        }
        let end = word(bytes, at::PREVIOUS_END);
        let chain = Chain::from_word(word(bytes, at::PREVIOUS_CHAIN));
        let header = Self {
            number: word(bytes, at::NUMBER),
            salt: word(bytes, at::SALT),
            folder_salt: word(bytes, at::FOLDER_SALT),
            bound: word(bytes, at::BOUND).min(MAX_BOUND),
            previous: (end != 0).then_some(End { offset: end, chain }),
        };
        if header.number != number {
            return Err(format!("expected number {number}, found {}", header.number));
        }
        if header.folder_salt != folder_salt {
            return Err("expected a log of this folder, found one of another folder".into());
        }
        Ok(header)
    }
}
