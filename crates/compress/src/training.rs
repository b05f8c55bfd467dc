//! Trains dictionaries and measures what they save.

use crate::contexts::Contexts;
use crate::dictionary::{Dictionary, set_dictionary_id};
use crate::error::{Error, Result};
use std::num::NonZeroU32;
use zstd::zstd_safe::{get_error_name, train_from_buffer};

/// Minimum length of a dictionary in bytes. zstd refuses less.
pub const MIN_DICTIONARY_BYTES: usize = 256;
/// Default of the maximum length of a trained dictionary in bytes.
pub const DEFAULT_DICTIONARY_BYTES: usize = 32 << 10;
/// One of this many samples is held out: it measures the dictionary and does not train it.
const HELD_OUT_RATIO: usize = 4;
/// A dictionary is at most 1/4 of the samples. With fewer samples it would repeat single values.
const MIN_SAMPLES_RATIO: usize = 4;
/// Minimum number of samples that train a dictionary. zstd refuses less.
const MIN_SAMPLES: usize = 8;
/// Minimum length of these samples in bytes.
const MIN_SAMPLE_BYTES: usize = MIN_DICTIONARY_BYTES * MIN_SAMPLES_RATIO;
/// Ids of dictionaries that are derived from their content: 2 bytes in each value, and not those
/// that a set assigns first.
const DERIVED_IDS: std::ops::Range<u32> = 1024..16384;

/// The lengths of the same values in three forms, in bytes. A value that compression does not make
/// at least 1/16 shorter counts as raw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The number of values.
    pub values: u64,
    /// Uncompressed.
    pub raw_bytes: u64,
    /// Encoded without a dictionary, headers included.
    pub plain_bytes: u64,
    /// Encoded with the dictionary, headers included.
    pub dictionary_bytes: u64,
}

impl Sizes {
    /// Returns the part that the dictionary saves compared with no dictionary, from 0 to 1.
    /// Negative if it makes values longer.
    pub fn saved(&self) -> f64 {
        1.0 - self.dictionary_bytes as f64 / (self.plain_bytes as f64).max(1.0)
    }
}

/// Samples in two parts: for training, and held out.
#[derive(Debug)]
pub(crate) struct Split {
    training: Vec<u8>,
    lengths: Vec<usize>,
    pub(crate) held_out: Vec<Box<[u8]>>,
}

impl Split {
    pub(crate) fn new(samples: Vec<Box<[u8]>>) -> Self {
        let mut split = Self { training: Vec::new(), lengths: Vec::new(), held_out: Vec::new() };
        for (at, sample) in samples.into_iter().enumerate() {
            if at % HELD_OUT_RATIO == HELD_OUT_RATIO - 1 {
                split.held_out.push(sample);
            } else {
                split.training.extend_from_slice(&sample);
                split.lengths.push(sample.len());
            }
        }
        split
    }

    /// Trains a dictionary of at most `max_bytes` bytes. zstd chooses its id.
    pub(crate) fn train(&self, max_bytes: usize) -> Result<Vec<u8>> {
        let failed = |message| Error::Training {
            samples: self.lengths.len(),
            bytes: self.training.len() as u64,
            message,
        };
        if self.lengths.len() < MIN_SAMPLES || self.training.len() < MIN_SAMPLE_BYTES {
            let expected = format!("{MIN_SAMPLES} samples with {MIN_SAMPLE_BYTES} bytes");
            return Err(failed(format!("expected at least {expected}, without those held out")));
        }
        let max_bytes = max_bytes.min(self.training.len() / MIN_SAMPLES_RATIO);
        let mut bytes = Vec::with_capacity(max_bytes.max(MIN_DICTIONARY_BYTES));
        let trained = train_from_buffer(&mut bytes, &self.training, &self.lengths);
        trained.map_err(|code| failed(get_error_name(code).to_owned()))?;
        Ok(bytes)
    }
}

/// Returns the length of values encoded with a dictionary or without one, in bytes.
pub(crate) fn encoded_bytes(
    contexts: &mut Contexts,
    values: &[Box<[u8]>],
    level: i32,
    dictionary: Option<&Dictionary>,
    buffer: &mut Vec<u8>,
) -> u64 {
    let lengths = values.iter().map(|raw| {
        let encoded = contexts.compress(raw, level, dictionary, buffer);
        encoded.map_or(raw.len(), <[u8]>::len) as u64
    });
    lengths.sum()
}

/// A dictionary that was trained from samples, and what it saves on those that were held out.
#[derive(Debug)]
pub struct Trained {
    /// The dictionary, in zstd's format.
    pub bytes: Vec<u8>,
    /// The id of the dictionary.
    pub id: NonZeroU32,
    /// The number of samples that trained the dictionary.
    pub training_samples: u64,
    /// The sizes of the held-out samples.
    pub held_out: Sizes,
}

/// Trains a dictionary from samples. Every fourth sample is held out and measures what the
/// dictionary saves at `level`. The dictionary has at most `max_bytes` bytes, and at most a quarter
/// of the bytes of the other samples.
///
/// Without an `id`, it is derived from the content and is between 1,024 and 16,383.
///
/// Needs about three times the memory of the samples, and 10 MiB.
///
/// # Errors
///
/// Returns [`Error::Training`] if there are too few samples, or if they have nothing in common.
pub fn train(
    samples: Vec<Box<[u8]>>,
    max_bytes: usize,
    level: i32,
    id: Option<NonZeroU32>,
) -> Result<Trained> {
    let split = Split::new(samples);
    let mut bytes = split.train(max_bytes)?;
    let id = id.unwrap_or_else(|| derived_id(&bytes));
    set_dictionary_id(&mut bytes, id)?;
    let dictionary = Dictionary::new(&bytes, level)?;
    let held_out = measure(&split.held_out, &dictionary)?;
    Ok(Trained { bytes, id, training_samples: split.lengths.len() as u64, held_out })
}

/// Measures what a dictionary saves on values, at the level for which it was prepared.
///
/// # Errors
///
/// Returns [`Error::OutOfMemory`].
pub fn measure(values: &[Box<[u8]>], dictionary: &Dictionary) -> Result<Sizes> {
    let (mut contexts, mut buffer) = (Contexts::new()?, Vec::new());
    let mut encoded =
        |dictionary, level| encoded_bytes(&mut contexts, values, level, dictionary, &mut buffer);
    Ok(Sizes {
        values: values.len() as u64,
        raw_bytes: values.iter().map(|value| value.len() as u64).sum(),
        plain_bytes: encoded(None, dictionary.level()),
        dictionary_bytes: encoded(Some(dictionary), dictionary.level()),
    })
}

/// Returns an id for a dictionary that zstd trained: zstd derives one of 31 bits from the content.
fn derived_id(bytes: &[u8]) -> NonZeroU32 {
    let id = zstd::zstd_safe::get_dict_id_from_dict(bytes).map_or(0, NonZeroU32::get);
    let id = DERIVED_IDS.start + id % (DERIVED_IDS.end - DERIVED_IDS.start);
    NonZeroU32::new(id).unwrap_or(NonZeroU32::MIN)
}
