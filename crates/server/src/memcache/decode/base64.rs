//! Keys in base64: the alphabet of RFC 4648 with padding.

use crate::memcache::MAX_KEY_LEN;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::PAD;

/// As in memcached, unused bits before the padding may have any value.
const ENGINE: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// A buffer for a key that was decoded from base64.
#[derive(Clone, Debug)]
pub struct KeyBuffer([u8; MAX_KEY_LEN / 4 * 3]);

impl Default for KeyBuffer {
    fn default() -> Self {
        Self([0; MAX_KEY_LEN / 4 * 3])
    }
}

/// Returns whether `text`, which is no longer than a key, is base64 of at least one byte.
pub(crate) fn is_base64(text: &[u8]) -> bool {
    let mut buffer = KeyBuffer::default();
    ENGINE.decode_slice(text, &mut buffer.0).is_ok_and(|len| len > 0)
}

/// Decodes `text`, which [`is_base64`].
pub(crate) fn decode<'r>(text: &[u8], buffer: &'r mut KeyBuffer) -> &'r [u8] {
    let len = ENGINE.decode_slice(text, &mut buffer.0).unwrap_or_default();
    &buffer.0[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_rfc_4648() {
        let pairs: [(&[u8], &[u8]); 8] = [
            (b"Zg==", b"f"),
            (b"Zm8=", b"fo"),
            (b"Zm9v", b"foo"),
            (b"Zm9vYg==", b"foob"),
            (b"Zm9vYmE=", b"fooba"),
            (b"Zm9vYmFy", b"foobar"),
            (b"/+8A", b"\xff\xef\0"),
            // Bits that the padding leaves over.
            (b"Zh==", b"f"),
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
