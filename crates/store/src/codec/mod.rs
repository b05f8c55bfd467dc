//! Types over bytes: how a key or a value of a type becomes bytes, and back.

pub(crate) mod integers;
#[cfg(feature = "json")]
mod json;

pub use integers::{I32, I64, U16, U32, U64, U128};
#[cfg(feature = "json")]
pub use json::Json;

use crate::error::{Error, Result};
use std::borrow::Cow;

/// How keys of a type become bytes. The order of the bytes is the order of scans.
pub trait Key {
    /// The type.
    type Item<'t>;

    /// The bytes of a key.
    fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>>;

    /// The key that these bytes are. Fails with [`Error::Decode`] where they are none.
    fn decode(bytes: &[u8]) -> Result<Self::Item<'_>>;
}

/// How values of a type become bytes.
pub trait Value {
    /// The type.
    type Item<'t>;

    /// The bytes of a value.
    fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>>;

    /// The value that these bytes are. Fails with [`Error::Decode`] where they are none.
    fn decode(bytes: &[u8]) -> Result<Self::Item<'_>>;
}

/// Bytes as they are.
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
