//! Compression of the values in the cache.
//!
//! Values are compressed when they are stored, and decompressed when a command reads them: clients
//! never notice, except those that ask for stored bytes. `state/values.rs` has the functions with
//! which commands read and write values; it uses [`Compression`].
//!
//! | file | content |
//! |---|---|
//! | `options.rs` | how values are compressed |
//! | `codec.rs` | the codec of a thread |
//! | `encoded.rs` | a value in the form in which it is stored |
//! | `stats.rs` | what compression saves |
//! | `training.rs` | the thread that trains dictionaries |

mod codec;
mod encoded;
mod options;
mod stats;
mod training;

pub(crate) use encoded::EncodedValue;
pub use options::{CompressionOptions, DictionarySource};
pub(crate) use stats::{Saved, SavedByDictionary};
pub(crate) use training::TrainingThread;

use crate::log;
use codec::{keep_buffer, with_codec};
use nuthatch_cache::{Error, Item};
use nuthatch_compress::{
    Dictionaries, Dictionary, DictionaryFolder, Encoded, Error as CompressError, Sampler, ValueInfo,
};
use stats::Totals;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::iter::once;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

/// Maximum length of a value that is compressed, in bytes. The event loop must not stall.
const MAX_LEN: usize = 1 << 20;
/// The maximum from level 5 on, and from level 10 on.
const MAX_LEN_LEVEL_5: usize = 256 << 10;
const MAX_LEN_LEVEL_10: usize = 64 << 10;

/// Bytes that the header of a compressed item needs in addition, at most. A value is stored raw
/// unless compression saves more.
const HEADER_LEN: usize = 10;

/// All dictionaries take at most one of this many bytes of the budget.
const DICTIONARIES_RATIO: u64 = 16;
/// Maximum bytes of all dictionaries with any budget.
const MAX_DICTIONARIES_LEN: u64 = 64 << 20;

/// One of this many values that clients store is a sample for training.
const SAMPLE_INTERVAL: u32 = 16;
/// Samples take at most one of this many bytes of the budget.
const SAMPLES_RATIO: u64 = 64;
/// Maximum bytes of samples with any budget.
const MAX_SAMPLES_LEN: u64 = 16 << 20;
/// Maximum groups of keys with dictionaries of their own.
const MAX_GROUPS: u64 = 31;
/// Minimum bytes of the samples of a group, with which the number of groups is chosen.
const SAMPLES_OF_GROUP: u64 = 512 << 10;
/// Bytes of memory that training takes in addition to three times the samples of a group.
const TRAINING_LEN: u64 = 10 << 20;

/// Compresses and decompresses the values of a server.
#[derive(Debug)]
pub struct Compression {
    /// Whether all values are compressed, and not only those whose client asks for it.
    is_on: bool,
    min_len: usize,
    max_len: usize,
    /// The name of the source of dictionaries.
    source: &'static str,
    dictionaries: Arc<Dictionaries>,
    /// Samples of values, if dictionaries are trained.
    sampler: Option<Arc<Sampler>>,
    /// Values that were compressed without a dictionary.
    without_dictionary: Totals,
    /// Values that compression does not make shorter.
    incompressible: Totals,
    /// Dictionaries of the folder that could not be loaded.
    lost_dictionaries: AtomicU64,
    /// Times that a new dictionary was not adopted since the limit was reached or it could not be
    /// saved.
    refused_dictionaries: AtomicU64,
    /// Bytes by which the memory of codecs has changed since it was last reserved.
    unreported: AtomicIsize,
}

impl Default for Compression {
    /// Returns a compression that only clients use which ask for it: level 3, no dictionary.
    fn default() -> Self {
        let CompressionOptions { level, min_len, .. } = CompressionOptions::default();
        let source = DictionarySource::Off.name();
        Self::with(Dictionaries::new(level, 0), false, min_len, source)
    }
}

impl Compression {
    /// Minimum budget in bytes of a cache whose server trains dictionaries.
    pub const MIN_MEMORY_TO_TRAIN: u64 = 64 << 20;

    /// Creates a compression of all values of a cache with a budget of `memory` bytes.
    ///
    /// # Errors
    ///
    /// Returns the error of the dictionary: it is not one, or there is no memory for it.
    pub fn new(options: &CompressionOptions, memory: u64) -> Result<Self, CompressError> {
        let dictionaries = Dictionaries::new(options.level, dictionaries_limit(memory));
        Self::of_values(dictionaries, options, memory)
    }

    /// Creates the compression of a cache with a disk tier. Its dictionaries are in a folder, which
    /// no other process uses: those of earlier runs, and each new one before a value is compressed
    /// with it. Without `options`, values are not compressed, but those on disk can be read.
    ///
    /// `has_items` is whether there may be items on disk. If not, the dictionaries of earlier runs
    /// are removed.
    ///
    /// # Errors
    ///
    /// Returns [`CompressError::File`] if the system refuses to read or write the folder, and the
    /// errors of [`new`](Self::new).
    pub fn with_folder(
        options: Option<&CompressionOptions>,
        memory: u64,
        (folder, has_items): (&Path, bool),
    ) -> Result<Self, CompressError> {
        let used = options.cloned().unwrap_or_default();
        let mut dictionaries = Dictionaries::new(used.level, dictionaries_limit(memory));
        let opened = DictionaryFolder::open(folder, has_items, RandomState::new().hash_one(0))?;
        let lost = dictionaries.keep_in(opened)?;
        for (id, error) in &lost {
            log::dictionary_lost(*id, error);
        }
        let compression = match options {
            Some(options) => Self::of_values(dictionaries, options, memory)?,
            None => Self::with(dictionaries, false, used.min_len, DictionarySource::Off.name()),
        };
        compression.lost_dictionaries.store(lost.len() as u64, Ordering::Relaxed);
        Ok(compression)
    }

    /// Creates a compression of all values.
    fn of_values(
        dictionaries: Dictionaries,
        options: &CompressionOptions,
        memory: u64,
    ) -> Result<Self, CompressError> {
        let CompressionOptions { min_len, dictionaries: source, .. } = options;
        if let DictionarySource::Fixed(bytes) = source {
            dictionaries.use_for_all(bytes)?;
        }
        let mut compression = Self::with(dictionaries, true, *min_len, source.name());
        if *source == DictionarySource::Auto {
            let bytes = (memory / SAMPLES_RATIO).min(MAX_SAMPLES_LEN);
            // The rest of the groups has its samples, too.
            let groups = (bytes / SAMPLES_OF_GROUP).saturating_sub(1).clamp(1, MAX_GROUPS);
            let seed = RandomState::new().hash_one(bytes);
            let sampler = Sampler::new(SAMPLE_INTERVAL, groups as usize, bytes as usize, seed);
            compression.sampler = Some(Arc::new(sampler));
            let len = bytes + 3 * (bytes / (groups + 1)) + TRAINING_LEN;
            compression.note_memory((len as usize).cast_signed());
        }
        Ok(compression)
    }

    fn with(dictionaries: Dictionaries, is_on: bool, min_len: usize, source: &'static str) -> Self {
        let max_len = match dictionaries.level() {
            ..5 => MAX_LEN,
            5..10 => MAX_LEN_LEVEL_5,
            10.. => MAX_LEN_LEVEL_10,
        };
        let unreported = AtomicIsize::new(dictionaries.memory_bytes().cast_signed());
        let dictionaries = Arc::new(dictionaries);
        let (without_dictionary, incompressible) = (Totals::default(), Totals::default());
        let sampler = None;
        Self {
            is_on,
            min_len,
            max_len,
            source,
            dictionaries,
            sampler,
            without_dictionary,
            incompressible,
            lost_dictionaries: AtomicU64::new(0),
            refused_dictionaries: AtomicU64::new(0),
            unreported,
        }
    }

    /// Returns whether all values are compressed that are long enough.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Encodes a value that is about to be stored: compressed if compression is on and shortens the
    /// item.
    #[inline]
    pub(crate) fn encode<'v>(&self, key: &[u8], value: &'v [u8]) -> EncodedValue<'v> {
        if self.is_on && value.len() >= self.min_len {
            self.compress(key, value)
        } else {
            EncodedValue::raw(value)
        }
    }

    /// Compresses a value of any length if that shortens the item, even if compression is off.
    pub(crate) fn compress<'v>(&self, key: &[u8], value: &'v [u8]) -> EncodedValue<'v> {
        if value.len() > self.max_len {
            return EncodedValue::raw(value);
        }
        let compressed = with_codec(&self.dictionaries, self.sampler.as_ref(), |thread| {
            let mut buffer = std::mem::take(&mut thread.buffer);
            let mut len = None;
            if let Encoded::Compressed(encoded) = thread.codec.compress(key, value, &mut buffer) {
                self.note_memory(thread.memory_change());
                if encoded.len() + HEADER_LEN <= value.len() {
                    if encoded.first() == Some(&0) {
                        self.without_dictionary.add(value.len(), encoded.len());
                    }
                    len = Some(encoded.len());
                }
            }
            (buffer, len)
        });
        match compressed {
            Ok((buffer, Some(len))) => EncodedValue::compressed(buffer, len),
            Ok((buffer, None)) => {
                keep_buffer(buffer);
                self.incompressible.add(value.len(), value.len());
                EncodedValue::raw(value)
            }
            // Without memory for a codec, values are stored as they came.
            Err(_) => EncodedValue::raw(value),
        }
    }

    /// Appends the raw value of an item whose value is compressed.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if there is no memory for it, or if it is damaged, which is logged. Nothing
    /// is appended then.
    pub(crate) fn decompress(&self, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        self.decompress_value(item.value(), out)
    }

    /// Appends the raw value of a compressed one, as [`decompress`](Self::decompress) does.
    pub(crate) fn decompress_value(&self, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let result = with_codec(&self.dictionaries, self.sampler.as_ref(), |thread| {
            thread.codec.decompress(value, MAX_LEN, out)
        });
        match result {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) | Err(error) => {
                log::value_unreadable(&error);
                Err(Error::Full)
            }
        }
    }

    /// Returns an item with its raw value: the item itself, or one in `buffer` if the value is
    /// compressed.
    ///
    /// # Errors
    ///
    /// Those of [`decompress`](Self::decompress).
    #[inline]
    pub(crate) fn raw_item<'i>(
        &self,
        item: Item<'i>,
        buffer: &'i mut Vec<u8>,
    ) -> Result<Item<'i>, Error> {
        if item.is_compressed() { self.decompressed(&item, buffer) } else { Ok(item) }
    }

    #[inline(never)]
    fn decompressed<'b>(
        &self,
        item: &Item<'_>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Item<'b>, Error> {
        buffer.clear();
        buffer.extend_from_slice(item.key());
        self.decompress(item, buffer)?;
        Ok(item.with_value(buffer))
    }

    /// Returns whether a compressed value of an item on disk can be decompressed: whether its
    /// dictionary is known.
    pub fn can_decompress(&self, value: &[u8]) -> bool {
        let info = ValueInfo::read(value);
        info.is_ok_and(|info| info.dictionary.is_none_or(|id| self.dictionary(id).is_some()))
    }

    /// Returns the dictionary with this id.
    pub(crate) fn dictionary(&self, id: NonZeroU32) -> Option<Arc<Dictionary>> {
        self.dictionaries.find(id)
    }

    /// Returns the level of zstd.
    pub(crate) fn level(&self) -> i32 {
        self.dictionaries.level()
    }

    /// Returns the minimum length of a value that is compressed, in bytes.
    pub(crate) fn min_len(&self) -> usize {
        self.min_len
    }

    /// Returns the maximum length of a value that is compressed, in bytes.
    pub(crate) fn max_len(&self) -> usize {
        self.max_len
    }

    /// Returns the name of the source of dictionaries.
    pub(crate) fn source(&self) -> &'static str {
        self.source
    }

    /// Returns the values that were long enough, but that compression did not make shorter.
    pub(crate) fn incompressible(&self) -> Saved {
        self.incompressible.saved()
    }

    /// Returns the number of dictionaries of earlier runs that could not be loaded.
    pub(crate) fn lost_dictionaries(&self) -> u64 {
        self.lost_dictionaries.load(Ordering::Relaxed)
    }

    /// Returns how often a new dictionary was not adopted since the limit was reached or it could
    /// not be saved.
    pub(crate) fn refused_dictionaries(&self) -> u64 {
        self.refused_dictionaries.load(Ordering::Relaxed)
    }

    /// Returns what was saved without a dictionary, which has the id 0, and with each one, by id.
    pub(crate) fn saved(&self) -> Vec<SavedByDictionary> {
        let (saved, groups) = (self.without_dictionary.saved(), Vec::new());
        let without = SavedByDictionary { id: 0, saved, memory_bytes: 0, groups };
        once(without).chain(self.dictionaries.stats().into_iter().map(Into::into)).collect()
    }

    /// Switches the codec of this thread to the current dictionaries, so that old ones can be
    /// removed.
    #[inline]
    pub(crate) fn refresh(&self) {
        if self.is_on {
            codec::refresh();
        }
    }

    #[inline]
    fn note_memory(&self, change: isize) {
        if change != 0 {
            self.unreported.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// Returns the bytes by which the memory of codecs and dictionaries has changed since the last
    /// call.
    #[inline]
    pub(crate) fn take_memory_change(&self) -> isize {
        if self.unreported.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.unreported.swap(0, Ordering::Relaxed)
    }
}

/// Returns the maximum bytes of all dictionaries of a cache with a budget of `memory` bytes.
fn dictionaries_limit(memory: u64) -> usize {
    (memory / DICTIONARIES_RATIO).min(MAX_DICTIONARIES_LEN) as usize
}

/// Returns the length of the raw value of an item in bytes.
#[inline]
pub(crate) fn raw_len(item: &Item<'_>) -> usize {
    if item.is_compressed() { compressed_len(item) } else { item.value().len() }
}

#[inline(never)]
fn compressed_len(item: &Item<'_>) -> usize {
    ValueInfo::read(item.value()).map_or(0, |info| info.raw_len as usize)
}
