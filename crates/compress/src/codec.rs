//! Compression and decompression of values on one thread.

use crate::contexts::Contexts;
use crate::dictionaries::{Dictionaries, Set};
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::format::Header;
use crate::group::GroupId;
use crate::sampler::Sampler;
use std::sync::Arc;

/// Default of the minimum length of a value that is compressed, in bytes.
pub const DEFAULT_MIN_LEN: usize = 64;
/// Maximum length of a value that is compressed with a dictionary, in bytes. Longer values contain
/// enough repetition of their own.
pub const MAX_LEN_WITH_DICTIONARY: usize = 64 << 10;

/// The form in which a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Encoded<'b> {
    /// The raw value: compression does not save at least 1/16 of it.
    Raw,
    /// A compressed value, at least 1/16 shorter than the raw one. It was counted for its
    /// dictionary: call [`Codec::release`] when it is removed, or if it is not stored at all.
    Compressed(&'b [u8]),
}

/// Compresses and decompresses values. Each thread has its own codec; all share [`Dictionaries`].
///
/// At level 3, a codec needs about 130 KiB for short values, 0.8 MiB for values up to 64 KiB, and
/// 1.4 MiB for longer ones; at level 9 up to 11 MiB, and at level 19 up to 90 MiB
/// ([`Self::memory_bytes`]). Values are written to buffers of the caller, which can be
/// reused: nothing is allocated for each value.
#[derive(Debug)]
pub struct Codec {
    dictionaries: Arc<Dictionaries>,
    set: Arc<Set>,
    contexts: Contexts,
    min_len: usize,
    sampling: Option<Sampling>,
}

/// The sampler, and how many values are skipped before the next sample.
#[derive(Debug)]
struct Sampling {
    sampler: Arc<Sampler>,
    skip: u32,
}

impl Codec {
    /// Creates a codec for these dictionaries.
    ///
    /// # Errors
    ///
    /// Returns [`Error::OutOfMemory`].
    pub fn new(dictionaries: &Arc<Dictionaries>) -> Result<Self> {
        Ok(Self {
            set: dictionaries.current(),
            dictionaries: Arc::clone(dictionaries),
            contexts: Contexts::new()?,
            min_len: DEFAULT_MIN_LEN,
            sampling: None,
        })
    }

    /// Sets the minimum length of a value that is compressed, in bytes.
    #[must_use]
    pub fn min_len(mut self, bytes: usize) -> Self {
        self.min_len = bytes;
        self
    }

    /// Passes samples of the values that are compressed to a sampler, for training.
    #[must_use]
    pub fn sampler(mut self, sampler: &Arc<Sampler>) -> Self {
        self.sampling = Some(Sampling { sampler: Arc::clone(sampler), skip: 0 });
        self
    }

    /// Compresses a value, with the dictionary of the key's group if there is one. The compressed
    /// value is the end of `buffer`, whose content is otherwise unspecified; its capacity grows to
    /// that of the longest value, plus 1/256 and 64 bytes.
    ///
    /// A value shorter than the minimum length is not compressed, and neither is one for which
    /// memory is short.
    pub fn compress<'b>(&mut self, key: &[u8], raw: &[u8], buffer: &'b mut Vec<u8>) -> Encoded<'b> {
        if raw.len() < self.min_len {
            return Encoded::Raw;
        }
        self.refresh();
        let mut dictionary = None;
        if raw.len() <= MAX_LEN_WITH_DICTIONARY {
            if let Some(sampling) = &mut self.sampling {
                match sampling.skip.checked_sub(1) {
                    Some(skip) => sampling.skip = skip,
                    None => sampling.skip = sampling.sampler.offer(key, raw),
                }
            }
            if self.set.has_dictionaries() {
                dictionary = self.set.of_group(GroupId::of(key));
            }
        }
        let found = dictionary.map(|dictionary| &**dictionary);
        match self.contexts.compress(raw, self.dictionaries.level(), found, buffer) {
            Some(encoded) => {
                if let Some(dictionary) = dictionary {
                    dictionary.note_compressed(raw.len() as u64, encoded.len() as u64);
                }
                Encoded::Compressed(encoded)
            }
            None => Encoded::Raw,
        }
    }

    /// Decompresses a value and appends it to `out`. Returns the length of the raw value. If there
    /// is an error, nothing is appended.
    ///
    /// At most `limit` bytes are appended, and 64 more reserved.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLong`] for a value longer than `limit`, [`Error::UnknownDictionary`],
    /// [`Error::OutOfMemory`], or one of the other errors if the encoded value is damaged.
    pub fn decompress(&mut self, encoded: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<usize> {
        let header = Header::parse(encoded)?;
        if header.raw_len > limit as u64 {
            return Err(Error::TooLong { limit: limit as u64, found: header.raw_len });
        }
        if header.dictionary == 0 {
            self.contexts.decompress(&header, None, out)?;
            return Ok(header.raw_len as usize);
        }
        if self.set.find(header.dictionary).is_none() {
            self.refresh();
        }
        let Some(dictionary) = self.set.find(header.dictionary) else {
            return Err(Error::UnknownDictionary { id: header.dictionary });
        };
        self.contexts.decompress(&header, Some(dictionary), out)?;
        Ok(header.raw_len as usize)
    }

    /// Counts another copy of a compressed value. Returns whether its dictionary is known. Raw
    /// values are not counted.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ValueInfo::read`](crate::ValueInfo::read).
    pub fn retain(&mut self, encoded: &[u8]) -> Result<bool> {
        self.count(encoded, |found, raw, encoded| found.retain(1, raw, encoded))
    }

    /// Subtracts a compressed value that was removed. Call it exactly once for each value that
    /// [`Self::compress`] returned as [`Encoded::Compressed`], that [`Self::retain`] counted, or
    /// that [`Dictionaries::retain`] counted. Returns whether its dictionary is known.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ValueInfo::read`](crate::ValueInfo::read).
    pub fn release(&mut self, encoded: &[u8]) -> Result<bool> {
        self.count(encoded, Dictionary::release)
    }

    fn count(&mut self, encoded: &[u8], count: impl FnOnce(&Dictionary, u64, u64)) -> Result<bool> {
        let header = Header::parse(encoded)?;
        if header.dictionary == 0 {
            return Ok(true);
        }
        if self.set.find(header.dictionary).is_none() {
            self.refresh();
        }
        let found = self.set.find(header.dictionary);
        Ok(found.inspect(|found| count(found, header.raw_len, encoded.len() as u64)).is_some())
    }

    /// Switches to the current set of dictionaries, if it changed. A thread that has no values for
    /// a while calls this, so that [`Dictionaries::reclaim`] can remove dictionaries.
    #[inline]
    pub fn refresh(&mut self) {
        if self.dictionaries.generation() != self.set.generation {
            self.set = self.dictionaries.current();
        }
    }

    /// Returns the memory of the contexts of zstd in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.contexts.memory_bytes()
    }
}
