//! How values are compressed.

use nuthatch_compress::DEFAULT_MIN_LEN;

/// How the server compresses values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressionOptions {
    /// The level of zstd, from 1 to 19.
    pub level: i32,
    /// Minimum length of a value that is compressed, in bytes.
    pub min_len: usize,
    /// The source of dictionaries.
    pub dictionaries: DictionarySource,
}

/// The source of the dictionaries with which values are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DictionarySource {
    /// Values are compressed without a dictionary.
    Off,
    /// The server trains dictionaries from samples of the values that clients store.
    Auto,
    /// All values are compressed with this dictionary, in zstd's format.
    Fixed(Vec<u8>),
}

impl DictionarySource {
    /// Returns the name that `INFO` reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::Fixed(_) => "file",
        }
    }
}

impl Default for CompressionOptions {
    /// Returns level 3 for values of at least 64 bytes, with trained dictionaries.
    fn default() -> Self {
        Self { level: 3, min_len: DEFAULT_MIN_LEN, dictionaries: DictionarySource::Auto }
    }
}

impl CompressionOptions {
    /// Sets the level of zstd, from 1 to 19.
    #[must_use]
    pub fn level(self, level: i32) -> Self {
        Self { level, ..self }
    }

    /// Sets the minimum length of a value that is compressed, in bytes.
    #[must_use]
    pub fn min_len(self, min_len: usize) -> Self {
        Self { min_len, ..self }
    }

    /// Sets the source of dictionaries.
    #[must_use]
    pub fn dictionaries(self, dictionaries: DictionarySource) -> Self {
        Self { dictionaries, ..self }
    }
}
