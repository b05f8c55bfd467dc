//! Codecs: conversions between types and the bytes of keys and values.

pub(crate) mod integers;
#[cfg(feature = "json")]
mod json;

pub use integers::{I32, I64, U16, U32, U64, U128};
#[cfg(feature = "json")]
pub use json::Json;

use crate::error::{Error, Result};
use std::borrow::Cow;

/// A codec for keys. Scans use the order of the encoded bytes.
pub trait Key {
    /// The type of decoded keys.
    type Item<'t>;

    /// Encodes a key.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if the key has no encoding.
    fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>>;

    /// Decodes a key.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if the bytes are not an encoded key.
    fn decode(bytes: &[u8]) -> Result<Self::Item<'_>>;
}

/// A codec for values.
pub trait Value {
    /// The type of decoded values.
    type Item<'t>;

    /// Encodes a value.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if the value has no encoding.
    fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>>;

    /// Decodes a value.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if the bytes are not an encoded value.
    fn decode(bytes: &[u8]) -> Result<Self::Item<'_>>;
}

/// Bytes without conversion.
#[derive(Clone, Copy, Debug)]
pub enum Bytes {}

/// Text in UTF-8.
#[derive(Clone, Copy, Debug)]
pub enum Str {}

macro_rules! borrowed {
    ($codec:ident, $item:ty, $encode:expr, $decode:expr) => {
        impl Key for $codec {
            type Item<'t> = &'t $item;

            fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>> {
                Ok(Cow::Borrowed($encode(item)))
            }

            fn decode(bytes: &[u8]) -> Result<Self::Item<'_>> {
                $decode(bytes)
            }
        }

        impl Value for $codec {
            type Item<'t> = &'t $item;

            fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>> {
                Ok(Cow::Borrowed($encode(item)))
            }

            fn decode(bytes: &[u8]) -> Result<Self::Item<'_>> {
                $decode(bytes)
            }
        }
    };
}

borrowed!(Bytes, [u8], |item| item, Ok);
borrowed!(Str, str, str::as_bytes, |bytes| {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Error::decode("text in UTF-8", format!("the byte {:#04x} at {at}", bytes[at]))
    })
});

#[cold]
fn wrong_len(expected: &'static str, bytes: &[u8]) -> Error {
    let shown = &bytes[..bytes.len().min(16)];
    Error::decode(expected, format!("{} bytes: \"{}\"", bytes.len(), shown.escape_ascii()))
}
