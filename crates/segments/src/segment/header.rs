//! The header of a segment.

use super::OpenError;
use crate::checksum::checksum;
use crate::layout::segment as at;

/// Encodes the header of a new segment.
pub(crate) fn header(number: u64, salt: u64, boot: u64) -> [u8; at::HEADER_LEN] {
    let mut bytes = [0; at::HEADER_LEN];
    let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
    put(at::MAGIC_AT, at::MAGIC);
    put(at::VERSION, &at::VERSION_NOW.to_le_bytes());
    put(at::NUMBER, &number.to_le_bytes());
    put(at::SALT, &salt.to_le_bytes());
    put(at::BOOT, &boot.to_le_bytes());
    let check = checksum(&bytes[..at::CHECK]);
    bytes[at::CHECK..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Decodes a header. Returns the salt and the boot.
///
/// # Errors
///
/// Returns [`OpenError::Damaged`] or [`OpenError::Newer`].
pub(super) fn read_header(
    bytes: &[u8; at::HEADER_LEN],
    number: u64,
) -> Result<(u64, u64), OpenError> {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let is_valid = bytes[..at::VERSION] == *at::MAGIC
        && word(at::NUMBER) == number
        && word(at::CHECK) == checksum(&bytes[..at::CHECK]);
    match word(at::VERSION) as u32 {
        at::VERSION_NOW if is_valid => Ok((word(at::SALT), word(at::BOOT))),
        version if is_valid && version > at::VERSION_NOW => Err(OpenError::Newer),
        _ => Err(OpenError::Damaged),
    }
}
