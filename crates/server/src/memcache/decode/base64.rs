//! Keys in base64: the alphabet of RFC 4648 with padding.

use crate::memcache::MAX_KEY_LEN;

/// A buffer for a key that was decoded from base64.
#[derive(Clone, Debug)]
pub struct KeyBuffer([u8; MAX_KEY_LEN / 4 * 3]);

impl Default for KeyBuffer {
    fn default() -> Self {
        Self([0; MAX_KEY_LEN / 4 * 3])
    }
}

const INVALID: u8 = 0xff;

/// The six bits that each character encodes.
static SIX_BITS: [u8; 256] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut table = [INVALID; 256];
    let mut i = 0;
    while i < alphabet.len() {
        table[alphabet[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// Returns whether `text` is base64 of at least one byte. As in memcached, unused bits before the
/// padding may have any value.
pub(crate) fn is_base64(text: &[u8]) -> bool {
    let unpadded = unpadded(text);
    text.len().is_multiple_of(4)
        && !unpadded.is_empty()
        && unpadded.iter().all(|&byte| SIX_BITS[usize::from(byte)] != INVALID)
}

/// Decodes `text`, which [`is_base64`] and is no longer than a key.
pub(crate) fn decode<'r>(text: &[u8], room: &'r mut KeyBuffer) -> &'r [u8] {
    let (mut bits, mut count, mut len) = (0_u32, 0, 0);
    for &byte in unpadded(text) {
        bits = bits << 6 | u32::from(SIX_BITS[usize::from(byte)]);
        count += 6;
        if count >= 8 {
            count -= 8;
            // `len` is within the buffer: it grows by 3 for each 4 characters of a key of limited
            // length.
            if let Some(place) = room.0.get_mut(len) {
                *place = (bits >> count) as u8;
                len += 1;
            }
        }
    }
    &room.0[..len]
}

fn unpadded(text: &[u8]) -> &[u8] {
    let one = text.strip_suffix(b"=").unwrap_or(text);
    one.strip_suffix(b"=").unwrap_or(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_rfc_4648() {
        let pairs: [(&[u8], &[u8]); 7] = [
            (b"Zg==", b"f"),
            (b"Zm8=", b"fo"),
            (b"Zm9v", b"foo"),
            (b"Zm9vYg==", b"foob"),
            (b"Zm9vYmE=", b"fooba"),
            (b"Zm9vYmFy", b"foobar"),
            (b"/+8A", b"\xff\xef\0"),
        ];
        for (text, bytes) in pairs {
            assert!(is_base64(text), "{}", text.escape_ascii());
            assert_eq!(decode(text, &mut KeyBuffer::default()), bytes);
        }
    }

    #[test]
    fn invalid_base64_is_refused() {
        let texts: [&[u8]; 9] =
            [b"", b"=", b"====", b"Zg", b"Zg=", b"Zg===", b"Z===", b"Zg==Zg==", b"Zm9-"];
        for text in texts {
            assert!(!is_base64(text), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn the_longest_key_fits() {
        let mut room = KeyBuffer::default();
        let text = [b'/'; MAX_KEY_LEN / 4 * 4];
        assert_eq!(decode(&text, &mut room), [0xff; MAX_KEY_LEN / 4 * 3]);
    }
}
