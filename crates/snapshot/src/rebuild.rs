//! How a file was built, so that a machine with the same entries can build the same bytes.

use crate::error::Result;
use crate::format::header::Shard;
use crate::format::layout::flags;
use crate::reader::Snapshot;
use crate::writer::{Compression, WriterOptions};

/// The revision of the writer's rules for the bytes of a file. Each change with which the writer
/// gives the same entries other bytes must raise it.
const LAYOUT_REVISION: u32 = 1;

/// The parameters of a build that determine the bytes of its file, besides the entries and the
/// metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildParameters {
    /// The seed of the key hash.
    pub seed: u64,
    /// How values are compressed.
    pub compression: Compression,
    /// The number of the shard and that of all shards of its set; `None` for a file that is no
    /// shard.
    pub shard: Option<(u32, u32)>,
}

impl BuildParameters {
    /// Returns the parameters with which a file was built. Returns `None` for a set, and for a file
    /// whose values this writer would compress to other bytes.
    ///
    /// A file does not store its compression level. It is found by compressing a sample of the
    /// values with each level: 3, the default, if that gives the same bytes, otherwise the lowest
    /// that does. Levels can differ only in values outside the sample, so compare the bytes of a
    /// file that is built with the result.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`](crate::Error::Corrupt) if a value of the sample is damaged, and
    /// [`Error::Unreadable`](crate::Error::Unreadable).
    pub fn of(snapshot: &Snapshot) -> Result<Option<Self>> {
        let Some(header) = snapshot.header_of_file() else { return Ok(None) };
        let compression = if header.flags & flags::ZSTD == 0 {
            Some(Compression::None)
        } else {
            compression::find(snapshot)?
        };
        let shard = header.shard.map(|Shard { number, of }| (number, of));
        let seed = header.seed;
        Ok(compression.map(|compression| Self { seed, compression, shard }))
    }

    /// Returns options for a build with these parameters. All rows of a shard must belong to it.
    pub fn options(&self) -> WriterOptions {
        let place = self.shard.map(|(number, of)| Shard { number, of });
        WriterOptions::new().seed(self.seed).compression(self.compression).place(place)
    }

    /// Returns the revision of this writer for these parameters. Writers with equal revisions write
    /// the same bytes for the same entries. It includes the version of zstd if values are
    /// compressed.
    pub fn revision(&self) -> u64 {
        let library: u32 = match self.compression {
            Compression::None => 0,
            #[cfg(feature = "zstd")]
            Compression::Zstd { .. } => zstd::zstd_safe::version_number(),
        };
        u64::from(LAYOUT_REVISION) << 32 | u64::from(library)
    }
}

#[cfg(feature = "zstd")]
mod compression {
    use super::{Compression, Result, Snapshot};
    use crate::reader::{Scratch, StoredValue};
    use zstd::bulk::Compressor;
    use zstd::dict::EncoderDictionary;

    /// Number of compressed values in a sample, and the number of their bytes with which it ends.
    const SAMPLE_VALUES: usize = 64;
    const SAMPLE_BYTES: usize = 1 << 20;

    /// Returns the levels in the order of the trials.
    fn levels() -> impl Iterator<Item = i32> {
        std::iter::once(3).chain((1..=22).filter(|level| *level != 3))
    }

    /// Returns the compression of a file that has compressed values, if a level gives its bytes.
    pub(super) fn find(snapshot: &Snapshot) -> Result<Option<Compression>> {
        let mut sample = Vec::new();
        let mut bytes = 0;
        for entry in snapshot {
            let value = entry?.value;
            if value.is_compressed() {
                bytes += value.bytes().len();
                sample.push(value);
            }
            if sample.len() == SAMPLE_VALUES || bytes >= SAMPLE_BYTES {
                break;
            }
        }
        let dictionary = snapshot.dictionary_bytes();
        let level = levels().find(|level| gives_same_bytes(*level, dictionary, &sample));
        Ok(level.map(|level| Compression::Zstd { level }))
    }

    /// Returns whether a level gives the stored bytes of all values.
    fn gives_same_bytes(level: i32, dictionary: &[u8], sample: &[StoredValue<'_>]) -> bool {
        let prepared = EncoderDictionary::copy(dictionary, level);
        let compressor = if dictionary.is_empty() {
            Compressor::new(level)
        } else {
            Compressor::with_prepared_dictionary(&prepared)
        };
        let Ok(mut compressor) = compressor else { return false };
        let mut scratch = Scratch::new();
        sample.iter().all(|value| {
            let bytes = value.uncompressed_bytes(&mut scratch);
            bytes.is_ok_and(|bytes| {
                compressor.compress(bytes).is_ok_and(|frame| frame == value.bytes())
            })
        })
    }
}

#[cfg(not(feature = "zstd"))]
mod compression {
    use super::{Compression, Result, Snapshot};

    /// Returns `None`: such a build has opened no file with compressed values.
    #[expect(clippy::unnecessary_wraps, reason = "the same shape as with zstd")]
    pub(super) fn find(_: &Snapshot) -> Result<Option<Compression>> {
        Ok(None)
    }
}
