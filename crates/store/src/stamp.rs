//! The stamp before each value of a stamped table: version and time of expiry.

use crate::error::{Error, Result};

/// Offsets within a row of a stamped table, as in `docs/formats/store.md`.
pub(crate) mod layout {
    pub(crate) const VERSION: usize = 0;
    pub(crate) const EXPIRY: usize = 8;
    pub(crate) const LEN: usize = 16;
}

/// The stamp of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The number of the change that wrote the row.
    pub(crate) version: u64,
    /// The time of expiry, in milliseconds since 1970; zero means never.
    pub(crate) expiry_ms: u64,
}

impl Stamp {
    pub(crate) fn bytes(self) -> [u8; layout::LEN] {
        let mut bytes = [0; layout::LEN];
        bytes[layout::VERSION..layout::EXPIRY].copy_from_slice(&self.version.to_le_bytes());
        bytes[layout::EXPIRY..].copy_from_slice(&self.expiry_ms.to_le_bytes());
        bytes
    }

    /// Splits a row into its stamp and its value.
    #[inline]
    pub(crate) fn split(row: &[u8]) -> Result<(Self, &[u8])> {
        let Some((stamp, value)) = row.split_first_chunk::<{ layout::LEN }>() else {
            return Err(too_short(row.len()));
        };
        let [version, expiry_ms] = [layout::VERSION, layout::EXPIRY].map(|at| {
            let word = stamp[at..].first_chunk().copied();
            u64::from_le_bytes(word.unwrap_or_default())
        });
        Ok((Self { version, expiry_ms }, value))
    }

    /// Returns whether the row has not expired.
    #[inline]
    pub(crate) fn is_live_at(self, now_ms: u64) -> bool {
        self.expiry_ms == 0 || self.expiry_ms > now_ms
    }
}

#[cold]
fn too_short(len: usize) -> Error {
    Error::decode("a row of 16 bytes or more, as stamped tables have", format!("{len} bytes"))
}
