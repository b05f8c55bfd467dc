//! The header of a batch.

use crate::checksum::checksum;
use crate::fields::{half, put_half, put_word, word};
use crate::layout::batch as at;
use crate::layout::{BLOCK, UNIT};

/// The content of the header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// The number of batches before this one in its file.
    pub(crate) sequence: u64,
    /// Length in bytes, with header and padding: a multiple of the block.
    pub(crate) len: u32,
    /// Length in bytes of header and records.
    pub(crate) used: u32,
    pub(crate) records: u32,
    /// The checksum of all bytes after the header.
    pub(crate) data_check: u64,
}

/// Returns the seed of the checksums of bytes at an offset of a file, so that a copy of them at
/// another place, or in another file, is not valid.
pub(crate) fn seed(salt: u64, offset: u64) -> u64 {
    salt ^ offset
}

impl BatchHeader {
    /// Encodes the header into the first bytes of the batch at `offset`.
    pub(crate) fn encode(self, out: &mut [u8], salt: u64, offset: u64) {
        let out = &mut out[..at::HEADER_LEN];
        out.fill(0);
        out[at::MAGIC_AT..at::SALT].copy_from_slice(at::MAGIC);
        put_word(out, at::SALT, salt);
        put_word(out, at::SEQUENCE, self.sequence);
        put_half(out, at::LEN, self.len);
        put_half(out, at::USED, self.used);
        put_half(out, at::RECORDS, self.records);
        put_word(out, at::DATA_CHECK, self.data_check);
        let check = checksum(&out[..at::CHECK], seed(salt, offset));
        put_word(out, at::CHECK, check);
    }

    /// Decodes the header of the batch at `offset`. Does not check the bytes after the header.
    ///
    /// # Errors
    ///
    /// Returns what was expected and what was found.
    pub(crate) fn decode(bytes: &[u8], salt: u64, offset: u64) -> Result<Self, &'static str> {
        let Some(bytes) = bytes.get(..at::HEADER_LEN) else {
            return Err("expected the header of a batch, found the end of the file");
        };
        if bytes[at::MAGIC_AT..at::SALT] != *at::MAGIC {
            return Err("expected the header of a batch, found another magic number");
        }
        if word(bytes, at::SALT) != salt {
            return Err("expected a batch of this file, found one of another file");
        }
        if word(bytes, at::CHECK) != checksum(&bytes[..at::CHECK], seed(salt, offset)) {
            return Err("expected the header of a batch, found another checksum");
        }
        let header = Self {
            sequence: word(bytes, at::SEQUENCE),
            len: half(bytes, at::LEN),
            used: half(bytes, at::USED),
            records: half(bytes, at::RECORDS),
            data_check: word(bytes, at::DATA_CHECK),
        };
        let (len, used) = (header.len as usize, header.used as usize);
        let are_aligned = len.is_multiple_of(BLOCK) && used.is_multiple_of(UNIT);
        if !are_aligned || used <= at::HEADER_LEN || used > len || header.records == 0 {
            return Err("expected the header of a batch, found impossible lengths");
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_of_the_header_of_a_batch_is_found() {
        let header =
            BatchHeader { sequence: 3, len: 8192, used: 4112, records: 2, data_check: 0xABCD };
        let mut bytes = [0; at::HEADER_LEN];
        header.encode(&mut bytes, 77, 4096);
        assert_eq!(BatchHeader::decode(&bytes, 77, 4096), Ok(header));
        assert!(BatchHeader::decode(&bytes, 77, 8192).is_err(), "another offset");
        assert!(BatchHeader::decode(&bytes, 78, 4096).is_err(), "another file");
        for bit in 0..at::HEADER_LEN * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(BatchHeader::decode(&flipped, 77, 4096).is_err(), "bit {bit}");
        }
    }
}
