//! Little-endian fields of headers. All offsets are constants of `layout`, within the bytes.

/// Returns the eight bytes at an offset as a number.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Returns the four bytes at an offset as a number.
pub(crate) fn half(bytes: &[u8], at: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(half)
}

/// Stores a number of eight bytes at an offset.
pub(crate) fn put_word(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Stores a number of four bytes at an offset.
pub(crate) fn put_half(bytes: &mut [u8], at: usize, half: u32) {
    bytes[at..at + 4].copy_from_slice(&half.to_le_bytes());
}
