//! The format of compressed values, which `docs/formats/compressed-values.md` specifies.
//!
//! ```text
//! dictionary id   LEB128, 1 to 5 bytes; 0 = none
//! descriptor      1 byte: the frame header descriptor of zstd
//! window          1 byte, only without the bit SINGLE_SEGMENT
//! raw length      1, 2, 4 or 8 bytes: the frame content size of zstd
//! blocks          the blocks of the frame
//! ```
//!
//! All that follows the dictionary id is a zstd frame in the format without a magic number.

use crate::error::{Error, Result};

/// Maximum length of a header in bytes.
pub const MAX_HEADER_LEN: usize = MAX_ID_LEN + 1 + 1 + 8;
/// Maximum length of a dictionary id in bytes.
const MAX_ID_LEN: usize = 5;
/// The bit of the descriptor of a frame without a window field: the window is the whole value.
const SINGLE_SEGMENT: u8 = 0x20;
/// The bits of the descriptor that must be zero: unused, reserved, checksum, dictionary id.
const ZERO_BITS: u8 = 0x1f;
/// The bits of the descriptor that have the length of the dictionary id in a frame of zstd.
const ID_BITS: u8 = 0x03;
/// The length of zstd's magic number.
const MAGIC_LEN: usize = 4;
/// The length of the header of a block.
const BLOCK_HEADER_LEN: usize = 3;
/// Maximum length of a block, before and after decompression.
const MAX_BLOCK_LEN: u64 = 128 << 10;

/// A header that was checked, and the frame that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header<'a> {
    /// The id of the dictionary. 0 is none.
    pub(crate) dictionary: u32,
    /// The length of the raw value in bytes.
    pub(crate) raw_len: u64,
    /// The frame without a magic number: descriptor, window, length and blocks.
    pub(crate) frame: &'a [u8],
    /// The offset of the first block in the encoded value.
    blocks_at: usize,
    /// The length of the encoded value.
    len: usize,
}

/// The lengths of the fields that a descriptor determines.
struct Fields {
    window: usize,
    raw_len: usize,
}

impl Fields {
    /// Returns the lengths of the fields after this descriptor. `None` if the frame has no length.
    fn of(descriptor: u8) -> Option<Self> {
        let is_single = descriptor & SINGLE_SEGMENT != 0;
        let raw_len = match descriptor >> 6 {
            0 if is_single => 1,
            0 => return None,
            flag => 1 << flag,
        };
        Some(Self { window: usize::from(!is_single), raw_len })
    }
}

impl<'a> Header<'a> {
    /// Parses the header of an encoded value. Does not check the blocks.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Truncated`], [`Error::UnknownCodec`] or [`Error::Invalid`].
    #[inline]
    pub(crate) fn parse(encoded: &'a [u8]) -> Result<Self> {
        let (dictionary, at) = read_id(encoded)?;
        let Some(&descriptor) = encoded.get(at) else {
            return Err(truncated("the descriptor", at + 1, encoded));
        };
        let fields = Fields::of(descriptor).filter(|_| descriptor & ZERO_BITS == 0);
        let Some(fields) = fields else {
            return Err(Error::UnknownCodec { offset: at, found: descriptor });
        };
        let len_at = at + 1 + fields.window;
        let blocks_at = len_at + fields.raw_len;
        let Some(field) = encoded.get(len_at..blocks_at) else {
            return Err(truncated("the raw length", blocks_at, encoded));
        };
        let raw_len = read_len(field).ok_or_else(|| Error::Invalid {
            offset: len_at as u64,
            expected: "a length below 2^63",
            found: format!("{field:02x?}"),
        })?;
        Ok(Self { dictionary, raw_len, frame: &encoded[at..], blocks_at, len: encoded.len() })
    }

    /// Checks that the blocks fill the frame exactly, and that they can expand to the raw length.
    /// Decompression then cannot reserve more than 128 KiB for each block, and cannot read another
    /// frame behind this one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Truncated`], [`Error::TrailingBytes`] or [`Error::Invalid`].
    #[inline]
    pub(crate) fn check_blocks(&self) -> Result<()> {
        let frame_at = self.len - self.frame.len();
        let (mut at, mut max_raw_len) = (self.blocks_at, 0_u64);
        loop {
            let end = at + BLOCK_HEADER_LEN;
            let Some(&[a, b, c]) = self.frame.get(at - frame_at..end - frame_at) else {
                return Err(self.truncated("the header of a block", end as u64));
            };
            let header = u32::from_le_bytes([a, b, c, 0]);
            let len = u64::from(header >> 3);
            let (stored, expanded) = match header >> 1 & 3 {
                0 => (len, len),
                1 => (1, len),
                2 => (len, MAX_BLOCK_LEN),
                _ => {
                    let found = "the reserved type 3".to_owned();
                    let expected = "a block of type 0, 1 or 2";
                    return Err(Error::Invalid { offset: at as u64, expected, found });
                }
            };
            max_raw_len += expanded.min(MAX_BLOCK_LEN);
            let next = end as u64 + stored;
            if next > self.len as u64 {
                return Err(self.truncated("a block", next));
            }
            at = next as usize;
            if header & 1 == 1 {
                break;
            }
        }
        if at != self.len {
            let (expected_len, found_len) = (at as u64, self.len as u64);
            return Err(Error::TrailingBytes { expected_len, found_len });
        }
        if self.raw_len > max_raw_len {
            return Err(Error::Invalid {
                offset: self.blocks_at as u64,
                expected: "blocks that expand to the raw length",
                found: format!("at most {max_raw_len} bytes instead of {}", self.raw_len),
            });
        }
        Ok(())
    }

    #[cold]
    fn truncated(&self, part: &'static str, expected_len: u64) -> Error {
        Error::Truncated { part, expected_len, found_len: self.len as u64 }
    }
}

#[cold]
fn truncated(part: &'static str, expected_len: usize, encoded: &[u8]) -> Error {
    Error::Truncated { part, expected_len: expected_len as u64, found_len: encoded.len() as u64 }
}

/// Reads a dictionary id. Returns it and its length.
#[inline]
fn read_id(encoded: &[u8]) -> Result<(u32, usize)> {
    let mut id = 0_u64;
    for at in 0..MAX_ID_LEN {
        let Some(&byte) = encoded.get(at) else {
            return Err(truncated("the dictionary id", at + 1, encoded));
        };
        id |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let is_shortest = at == 0 || byte != 0;
            return match u32::try_from(id) {
                Ok(id) if is_shortest => Ok((id, at + 1)),
                _ => Err(invalid_id(&encoded[..=at])),
            };
        }
    }
    Err(invalid_id(&encoded[..MAX_ID_LEN]))
}

#[cold]
fn invalid_id(found: &[u8]) -> Error {
    let expected = "a dictionary id below 2^32 in the shortest LEB128 form";
    Error::Invalid { offset: 0, expected, found: format!("{found:02x?}") }
}

/// Reads the field with the raw length.
#[inline]
fn read_len(field: &[u8]) -> Option<u64> {
    match *field {
        [a] => Some(u64::from(a)),
        // Two bytes represent lengths from 256 on.
        [a, b] => Some(u64::from(u16::from_le_bytes([a, b])) + 256),
        [a, b, c, d] => Some(u64::from(u32::from_le_bytes([a, b, c, d]))),
        _ => {
            let len = u64::from_le_bytes(field.try_into().ok()?);
            i64::try_from(len).is_ok().then_some(len)
        }
    }
}

/// Rewrites a frame of zstd, in place, as an encoded value. Returns the offset at which the encoded
/// value begins, or `None` if `frame` is not a frame with a length and without a checksum.
///
/// Our header replaces the magic number and the id in the frame, which are at least as long for ids
/// below 2^28. For greater ids without room there is no result.
pub(crate) fn rewrite_frame(frame: &mut [u8], dictionary: u32) -> Option<usize> {
    let descriptor = *frame.get(MAGIC_LEN)?;
    let fields = Fields::of(descriptor)?;
    let id_len = [0, 1, 2, 4][usize::from(descriptor & ID_BITS)];
    let descriptor = descriptor & !ID_BITS;
    if descriptor & ZERO_BITS != 0 {
        return None;
    }
    let window = *frame.get(MAGIC_LEN + 1)?;
    let blocks_at = MAGIC_LEN + 1 + fields.window + id_len + fields.raw_len;
    let descriptor_at = blocks_at.checked_sub(fields.raw_len + fields.window + 1)?;
    let mut id = [0; MAX_ID_LEN];
    let id = write_id(dictionary, &mut id);
    let start = descriptor_at.checked_sub(id.len())?;
    frame.get(blocks_at)?;
    frame[start..descriptor_at].copy_from_slice(id);
    frame[descriptor_at] = descriptor;
    if fields.window == 1 {
        frame[descriptor_at + 1] = window;
    }
    Some(start)
}

fn write_id(mut id: u32, buffer: &mut [u8; MAX_ID_LEN]) -> &[u8] {
    let mut len = 0;
    while id >= 0x80 {
        buffer[len] = id as u8 | 0x80;
        id >>= 7;
        len += 1;
    }
    buffer[len] = id as u8;
    &buffer[..=len]
}

/// The length of an encoded value's raw value in bytes, and the id of its dictionary, without
/// decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// The length of the raw value in bytes.
    pub raw_len: u64,
    /// The id of the dictionary. `None` if the value needs none.
    pub dictionary: Option<std::num::NonZeroU32>,
}

impl ValueInfo {
    /// Reads the header of an encoded value. Does not check the blocks.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Truncated`], [`Error::UnknownCodec`] or [`Error::Invalid`].
    pub fn read(encoded: &[u8]) -> Result<Self> {
        let header = Header::parse(encoded)?;
        let dictionary = std::num::NonZeroU32::new(header.dictionary);
        Ok(Self { raw_len: header.raw_len, dictionary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_in_the_shortest_form() {
        for (id, len) in [(0, 1), (1, 1), (127, 1), (128, 2), (16383, 2), (16384, 3), (u32::MAX, 5)]
        {
            let mut buffer = [0; MAX_ID_LEN];
            let bytes = write_id(id, &mut buffer);
            assert_eq!(bytes.len(), len, "{id}");
            assert_eq!(read_id(bytes).expect("an id"), (id, len));
        }
        let long: [&[u8]; 4] =
            [&[0x80, 0], &[0xff, 0xff, 0xff, 0xff, 0x1f], &[0x80; 5], &[0x80; 9]];
        for bytes in long {
            let error = read_id(bytes).expect_err("not an id").to_string();
            assert!(error.contains("expected a dictionary id below 2^32"), "{error}");
        }
        assert!(matches!(read_id(&[0x80]), Err(Error::Truncated { expected_len: 2, .. })));
    }

    #[test]
    fn descriptors_with_other_bits_are_unknown_codecs() {
        for found in 0..=255_u8 {
            let encoded = [&[0, found][..], &[0; 20]].concat();
            let is_known = matches!(found, 0x20 | 0x60 | 0xa0 | 0xe0 | 0x40 | 0x80 | 0xc0);
            assert_eq!(Header::parse(&encoded).is_ok(), is_known, "{found:#x}");
        }
    }

    #[test]
    fn blocks_fill_the_frame_and_expand_to_the_length() {
        let check = |encoded: &[u8]| Header::parse(encoded)?.check_blocks();
        // A raw block of 2 bytes, which is the last one.
        assert!(check(&[0, 0x20, 2, 17, 0, 0, 7, 7]).is_ok());
        let error = check(&[0, 0x20, 2, 17, 0, 0, 7]).expect_err("truncated").to_string();
        assert_eq!(error, "compressed value: expected at least 8 bytes for a block, found 7");
        let error = check(&[0, 0x20, 2, 17, 0, 0, 7, 7, 7]).expect_err("trailing").to_string();
        assert_eq!(error, "compressed value: expected its end after 8 bytes, found 9");
        let error = check(&[0, 0x20, 3, 17, 0, 0, 7, 7]).expect_err("too short").to_string();
        assert!(error.ends_with("found at most 2 bytes instead of 3"), "{error}");
        let error = check(&[0, 0x20, 3, 7, 0, 0]).expect_err("reserved").to_string();
        assert!(error.contains("offset 3: expected a block of type 0, 1 or 2"), "{error}");
        assert!(matches!(check(&[0, 0x20, 3, 7, 0]), Err(Error::Truncated { .. })));
    }
}
