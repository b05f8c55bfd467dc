//! Compression of values into zstd frames, with a dictionary trained on a sample of them.

use crate::error::{Error, Result};
use crate::format::layout::limits;
use crate::values::ValueType;
use crate::writer::options::Compression;
use crate::writer::row::Row;
use crate::writer::rows::Sorted;
use crate::writer::scatter::SLICE_BITS;
use crate::writer::spill::SpillFile;
use std::path::Path;
use zstd::dict::EncoderDictionary;

/// Minimum length of a value that is compressed, in bytes.
const MIN_COMPRESSED_VALUE_LEN: u64 = 32;
/// Maximum number of bytes of values that a dictionary is trained on.
const MAX_SAMPLE_BYTES: usize = 8 << 20;
/// Maximum length of a value in the sample. A dictionary helps longer values little.
const MAX_SAMPLE_VALUE_LEN: u64 = 128 << 10;
/// Minimum number of values in a sample. With fewer there is no dictionary.
const MIN_SAMPLE_VALUES: usize = 64;
/// Maximum length of a dictionary in bytes.
const MAX_DICTIONARY_LEN: usize = 64 << 10;

/// The compression level and the dictionary of a build.
pub(crate) struct Settings {
    level: Option<i32>,
    dictionary: Option<EncoderDictionary<'static>>,
}

impl Settings {
    /// Trains a dictionary if values are compressed and there are enough of them. Returns the bytes
    /// of the dictionary, too; they are empty if there is none. The result depends on the entries
    /// only.
    pub(crate) fn train(
        compression: Compression,
        sorted: &Sorted,
        blobs: &SpillFile,
    ) -> Result<(Self, Vec<u8>)> {
        let Compression::Zstd { level } = compression else {
            return Ok((Self { level: None, dictionary: None }, Vec::new()));
        };
        let bytes = train(sorted, blobs)?;
        let dictionary = (!bytes.is_empty()).then(|| EncoderDictionary::copy(&bytes, level));
        Ok((Self { level: Some(level), dictionary }, bytes))
    }

    /// Returns a compressor for one thread.
    pub(crate) fn compressor<'a>(&'a self, blobs: &'a SpillFile) -> Result<Compressor<'a>> {
        use zstd::bulk::Compressor as Zstd;
        let zstd = match (self.level, &self.dictionary) {
            (None, _) => None,
            (Some(_), Some(ready)) => Some(Zstd::with_prepared_dictionary(ready).map_err(failed)?),
            (Some(level), None) => Some(Zstd::new(level).map_err(failed)?),
        };
        Ok(Compressor { zstd, blobs })
    }
}

/// Trains a dictionary on the first values in the order of the file, which is a random sample,
/// because the file is in the order of the key hashes. Returns an empty dictionary if there are too
/// few values.
fn train(sorted: &Sorted, blobs: &SpillFile) -> Result<Vec<u8>> {
    let mut sample = Vec::new();
    let mut lens = Vec::new();
    for slice in 0..1_usize << SLICE_BITS {
        let slice = sorted.slices(slice..slice + 1)?;
        for at in slice.refs.iter() {
            let row = slice.buffers().row(*at);
            if is_compressible(&row)
                && row.value_len <= MAX_SAMPLE_VALUE_LEN
                && sample.len() < MAX_SAMPLE_BYTES
            {
                sample.extend_from_slice(&row.value(blobs)?);
                lens.push(row.value_len as usize);
            }
        }
        if sample.len() >= MAX_SAMPLE_BYTES {
            break;
        }
    }
    if lens.len() < MIN_SAMPLE_VALUES {
        return Ok(Vec::new());
    }
    // At most a tenth of the sample: a larger dictionary would cost as much as it saves.
    let len = MAX_DICTIONARY_LEN.min(sample.len() / 10);
    // Training fails for samples without repetition; then there is no dictionary.
    Ok(zstd::dict::from_continuous(&sample, &lens, len).unwrap_or_default())
}

/// Returns whether the length and the type of a value allow compression.
fn is_compressible(row: &Row<'_>) -> bool {
    (MIN_COMPRESSED_VALUE_LEN..=limits::MAX_DECOMPRESSED_LEN).contains(&row.value_len)
        && !matches!(row.value_type, ValueType::Bool | ValueType::I64 | ValueType::F64)
}

fn failed(error: std::io::Error) -> Error {
    Error::io(Path::new("zstd"), "compress", error)
}

/// Compresses values on one thread.
pub(crate) struct Compressor<'a> {
    zstd: Option<zstd::bulk::Compressor<'a>>,
    blobs: &'a SpillFile,
}

impl Compressor<'_> {
    /// Returns whether [`compress`](Self::compress) tries to compress the row's value.
    pub(crate) fn tries(&self, row: &Row<'_>) -> bool {
        self.zstd.is_some() && is_compressible(row)
    }

    /// Compresses the row's value. Returns the frame, or `None` if it saves less than an eighth.
    pub(crate) fn compress(&mut self, row: &Row<'_>) -> Result<Option<Vec<u8>>> {
        let Some(zstd) = self.zstd.as_mut().filter(|_| is_compressible(row)) else {
            return Ok(None);
        };
        let bytes = row.value(self.blobs)?;
        let frame = zstd.compress(&bytes).map_err(failed)?;
        Ok((frame.len() <= bytes.len() - bytes.len() / 8).then_some(frame))
    }
}
