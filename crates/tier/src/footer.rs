//! The footer of a sealed item file: its last block.

use crate::checksum::checksum;
use crate::directory::sealed_len;
use crate::fields::{put_word, word};
use crate::layout::footer as at;
use crate::layout::{BLOCK, record};

/// The content of a footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) number: u64,
    pub(crate) file_len: u64,
    /// The offset of the directory, at which the batches end.
    pub(crate) directory: u64,
    /// The number of records, and of entries in the directory.
    pub(crate) records: u64,
    pub(crate) batches: u64,
    /// The bytes of all records.
    pub(crate) live_bytes: u64,
    /// When the last item expires, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub(crate) last_expiry_ms: u64,
    /// When the file was sealed.
    pub(crate) sealed_ms: u64,
    /// The checksum of the directory, with its padding.
    pub(crate) directory_check: u64,
}

impl Footer {
    /// Encodes the footer into a block.
    pub(crate) fn encode(self, block: &mut [u8], salt: u64) {
        block.fill(0);
        block[at::MAGIC_AT..at::NUMBER].copy_from_slice(at::MAGIC);
        put_word(block, at::NUMBER, self.number);
        put_word(block, at::SALT, salt);
        put_word(block, at::FILE_LEN, self.file_len);
        put_word(block, at::DIRECTORY, self.directory);
        put_word(block, at::RECORDS, self.records);
        put_word(block, at::BATCHES, self.batches);
        put_word(block, at::LIVE_BYTES, self.live_bytes);
        put_word(block, at::LAST_EXPIRY, self.last_expiry_ms);
        put_word(block, at::SEALED, self.sealed_ms);
        put_word(block, at::DIRECTORY_CHECK, self.directory_check);
        let check = checksum(&block[..at::CHECK], salt);
        put_word(block, at::CHECK, check);
    }

    /// Decodes the last block of a file of `file_len` bytes.
    ///
    /// # Errors
    ///
    /// Returns what was expected and what was found.
    pub(crate) fn decode(
        block: &[u8],
        salt: u64,
        number: u64,
        file_len: u64,
    ) -> Result<Self, &'static str> {
        if block.len() < BLOCK || block[at::MAGIC_AT..at::NUMBER] != *at::MAGIC {
            return Err("expected a footer, found another magic number");
        }
        if word(block, at::CHECK) != checksum(&block[..at::CHECK], salt) {
            return Err("expected a footer, found another checksum");
        }
        let footer = Self {
            number: word(block, at::NUMBER),
            file_len: word(block, at::FILE_LEN),
            directory: word(block, at::DIRECTORY),
            records: word(block, at::RECORDS),
            batches: word(block, at::BATCHES),
            live_bytes: word(block, at::LIVE_BYTES),
            last_expiry_ms: word(block, at::LAST_EXPIRY),
            sealed_ms: word(block, at::SEALED),
            directory_check: word(block, at::DIRECTORY_CHECK),
        };
        if (footer.number, footer.file_len) != (number, file_len) {
            return Err("expected the footer of this file, found another number or length");
        }
        // A record has at least the fields of its header. So the products below cannot overflow.
        let min_len = record::FIELDS as u64;
        let is_possible = footer.directory >= BLOCK as u64
            && footer.directory.is_multiple_of(BLOCK as u64)
            && footer.directory < file_len
            && footer.records <= file_len / min_len
            && sealed_len(footer.directory, footer.records) == file_len;
        if !is_possible {
            return Err("expected a footer, found impossible lengths");
        }
        Ok(footer)
    }
}
