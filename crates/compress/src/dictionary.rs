//! A dictionary, prepared for decompression and usually for compression, and the count of the
//! values that need it.

use crate::error::{Error, Result};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use zstd::zstd_safe::{self, CDict, DDict};

/// Maximum length of a dictionary in bytes.
pub const MAX_DICTIONARY_BYTES: usize = 16 << 20;
/// The bytes with which a dictionary of zstd begins, then its id.
const MAGIC_LEN: usize = 4;
const ID_END: usize = MAGIC_LEN + 4;
/// The offset of what a dictionary has apart from its id.
pub(crate) const CONTENT_START: usize = ID_END;

/// A dictionary in zstd's format, which any number of threads use at once.
pub struct Dictionary {
    id: NonZeroU32,
    level: i32,
    bytes: Box<[u8]>,
    /// `None` if no new value is to be compressed with it.
    compression: Option<CDict<'static>>,
    decompression: DDict<'static>,
    live: LiveCounts,
    compressed: Totals,
}

/// The counts of all values that were compressed.
#[derive(Debug, Default)]
struct Totals {
    values: AtomicU64,
    raw_bytes: AtomicU64,
    encoded_bytes: AtomicU64,
}

/// The counts of the values that exist. A count can be negative for a moment: a thread may release
/// a value before the thread that stored it has counted its bytes.
#[derive(Debug, Default)]
struct LiveCounts {
    values: AtomicI64,
    raw_bytes: AtomicI64,
    encoded_bytes: AtomicI64,
}

/// The description of a dictionary of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DictionaryStats {
    /// The id.
    pub id: NonZeroU32,
    /// The names of the groups whose new values are compressed with the dictionary. The name of the
    /// rest is empty.
    pub groups: Vec<Vec<u8>>,
    /// The length of the dictionary in bytes.
    pub len: usize,
    /// The memory that it needs in bytes, prepared.
    pub memory_bytes: usize,
    /// The number of values that need the dictionary.
    pub values: u64,
    /// The length of these values in bytes, before compression.
    pub raw_bytes: u64,
    /// Their length in bytes, compressed.
    pub encoded_bytes: u64,
    /// The number of values that were compressed with the dictionary so far.
    pub compressed_values: u64,
    /// The length of all these values in bytes, before compression.
    pub compressed_raw_bytes: u64,
    /// The length of all these values in bytes, compressed.
    pub compressed_encoded_bytes: u64,
}

impl Dictionary {
    /// Prepares a dictionary for compression at this level.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotADictionary`] if the bytes are not a dictionary in zstd's format with an
    /// id, or are longer than [`MAX_DICTIONARY_BYTES`].
    pub fn new(bytes: &[u8], level: i32) -> Result<Self> {
        Self::for_reading(bytes, level)?.prepare()
    }

    /// Prepares a dictionary for decompression alone, which takes much less memory.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub(crate) fn for_reading(bytes: &[u8], level: i32) -> Result<Self> {
        if bytes.len() > MAX_DICTIONARY_BYTES {
            let found = format!("{}", bytes.len());
            return Err(Error::NotADictionary { expected: "at most 16777216 bytes", found });
        }
        if bytes.get(..MAGIC_LEN) != Some(&zstd_safe::MAGIC_DICTIONARY.to_le_bytes()) {
            let first = &bytes[..bytes.len().min(MAGIC_LEN)];
            let expected = "the magic number 37 a4 30 ec of a zstd dictionary";
            return Err(Error::NotADictionary { expected, found: format!("{first:02x?}") });
        }
        let Some(id) = zstd_safe::get_dict_id_from_dict(bytes) else {
            let expected = "an id of 1 or more";
            return Err(Error::NotADictionary { expected, found: "none".to_owned() });
        };
        let decompression = DDict::try_create(bytes).ok_or_else(|| cannot_load(bytes))?;
        Ok(Self {
            id,
            level,
            bytes: bytes.into(),
            compression: None,
            decompression,
            live: LiveCounts::default(),
            compressed: Totals::default(),
        })
    }

    fn prepare(mut self) -> Result<Self> {
        let compression = CDict::try_create(&self.bytes, self.level);
        self.compression = Some(compression.ok_or_else(|| cannot_load(&self.bytes))?);
        Ok(self)
    }

    /// Returns the id, which compressed values contain.
    pub fn id(&self) -> NonZeroU32 {
        self.id
    }

    /// Returns the level at which values are compressed with this dictionary.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// Returns the dictionary in zstd's format.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the memory that the dictionary needs in bytes.
    pub fn memory_bytes(&self) -> usize {
        let compression = self.compression.as_ref().map_or(0, CDict::sizeof);
        self.bytes.len() + compression + self.decompression.sizeof()
    }

    /// Returns the number of values that need the dictionary.
    pub fn values(&self) -> u64 {
        non_negative(&self.live.values)
    }

    /// Returns the form for compression, or `None` if the dictionary is only for reading.
    pub(crate) fn compression(&self) -> Option<&CDict<'static>> {
        self.compression.as_ref()
    }

    pub(crate) fn decompression(&self) -> &DDict<'static> {
        &self.decompression
    }

    /// Counts a value that was compressed, and adds it to those that need the dictionary.
    pub(crate) fn note_compressed(&self, raw_bytes: u64, encoded_bytes: u64) {
        self.retain(1, raw_bytes, encoded_bytes);
        self.compressed.values.fetch_add(1, Ordering::Relaxed);
        self.compressed.raw_bytes.fetch_add(raw_bytes, Ordering::Relaxed);
        self.compressed.encoded_bytes.fetch_add(encoded_bytes, Ordering::Relaxed);
    }

    /// Replaces the counts of the values that need the dictionary.
    pub(crate) fn recount(&self, values: u64, raw_bytes: u64, encoded_bytes: u64) {
        self.live.raw_bytes.store(raw_bytes.cast_signed(), Ordering::Relaxed);
        self.live.encoded_bytes.store(encoded_bytes.cast_signed(), Ordering::Relaxed);
        self.live.values.store(values.cast_signed(), Ordering::Relaxed);
    }

    /// Adds values to those that need the dictionary.
    pub(crate) fn retain(&self, values: u64, raw_bytes: u64, encoded_bytes: u64) {
        // The count of values decides when the dictionary is removed. `Set` and `Arc` order it.
        self.live.values.fetch_add(values.cast_signed(), Ordering::Relaxed);
        self.live.raw_bytes.fetch_add(raw_bytes.cast_signed(), Ordering::Relaxed);
        self.live.encoded_bytes.fetch_add(encoded_bytes.cast_signed(), Ordering::Relaxed);
    }

    /// Subtracts a value from those that need the dictionary.
    pub(crate) fn release(&self, raw_bytes: u64, encoded_bytes: u64) {
        self.live.raw_bytes.fetch_sub(raw_bytes.cast_signed(), Ordering::Relaxed);
        self.live.encoded_bytes.fetch_sub(encoded_bytes.cast_signed(), Ordering::Relaxed);
        self.live.values.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the description of the dictionary, for these groups.
    pub(crate) fn stats(&self, groups: Vec<Vec<u8>>) -> DictionaryStats {
        DictionaryStats {
            id: self.id,
            groups,
            len: self.bytes.len(),
            memory_bytes: self.memory_bytes(),
            values: self.values(),
            raw_bytes: non_negative(&self.live.raw_bytes),
            encoded_bytes: non_negative(&self.live.encoded_bytes),
            compressed_values: self.compressed.values.load(Ordering::Relaxed),
            compressed_raw_bytes: self.compressed.raw_bytes.load(Ordering::Relaxed),
            compressed_encoded_bytes: self.compressed.encoded_bytes.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Dictionary");
        fields.field("id", &self.id).field("level", &self.level);
        fields.field("len", &self.bytes.len()).field("live", &self.live).finish_non_exhaustive()
    }
}

fn cannot_load(bytes: &[u8]) -> Error {
    let found = format!("{} bytes that zstd cannot load", bytes.len());
    Error::NotADictionary { expected: "valid entropy tables", found }
}

fn non_negative(count: &AtomicI64) -> u64 {
    u64::try_from(count.load(Ordering::Relaxed)).unwrap_or_default()
}

/// Sets the id of a dictionary in zstd's format.
///
/// # Errors
///
/// Returns [`Error::NotADictionary`] if the bytes are shorter than the fields with the magic number
/// and the id.
pub fn set_dictionary_id(bytes: &mut [u8], id: NonZeroU32) -> Result<()> {
    let Some(field) = bytes.get_mut(MAGIC_LEN..ID_END) else {
        let found = format!("{} bytes", bytes.len());
        return Err(Error::NotADictionary { expected: "at least 8 bytes", found });
    };
    field.copy_from_slice(&id.get().to_le_bytes());
    Ok(())
}
