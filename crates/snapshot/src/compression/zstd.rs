//! Values as zstd frames, with a dictionary trained on a sample of them.

use super::Compression;
use crate::cast;
use crate::error::{Error, Result};
use crate::hash::checksum;
use crate::header::{Header, corrupt, wrong_checksum};
use crate::layout::{flags, header as header_at, limits};
use crate::map::Map;
use crate::value::ValueType;
use crate::writer::{Row, Sorted, SpillFile};
use std::fmt;
use std::path::Path;
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{self, DCtx};

/// What every frame begins with. Frames to be skipped begin otherwise.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Shorter values are stored as they are.
const COMPRESS_MIN: u64 = 32;
/// Bytes of values a dictionary is trained on, at most.
const SAMPLE_BYTES: usize = 8 << 20;
/// Values that a dictionary is trained on are at most this long: it helps longer ones little.
const SAMPLE_VALUE_LEN: u64 = 128 << 10;
/// Fewer values than this make no dictionary.
const SAMPLE_MIN: usize = 64;
/// A dictionary's length, at most.
const DICTIONARY_LEN: usize = 64 << 10;

/// The dictionary of a file, made ready for reading; `None` for a file without one.
pub(crate) struct Dictionary(Option<DecoderDictionary<'static>>);

impl Dictionary {
    pub(crate) fn new(map: &Map, header: &Header) -> Result<Self> {
        if header.flags & flags::DICTIONARY == 0 {
            return Ok(Self(None));
        }
        let section = header.dictionary;
        let bytes = &map.bytes()[section.offset as usize..section.end() as usize];
        let found = checksum(bytes);
        if found != header.dictionary_hash {
            let at = header_at::DICTIONARY_HASH as u64;
            let stored = header.dictionary_hash;
            return Err(wrong_checksum(map.path(), at, "the dictionary", (stored, found)));
        }
        let ready = DecoderDictionary::try_copy(bytes)
            .map_err(|e| corrupt(map.path(), section.offset, "a zstd dictionary", e))?;
        Ok(Self(Some(ready)))
    }
}

/// A buffer that compressed values are read into. One for each thread serves any number of
/// snapshots.
#[derive(Default)]
pub struct Scratch {
    /// `f64` rather than `u8`, so that lists of numbers are aligned.
    words: Vec<f64>,
    context: Option<DCtx<'static>>,
}

impl Scratch {
    /// An empty buffer; it grows to the largest value it reads, at most 16 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of bytes that the buffer takes.
    pub(crate) fn capacity(&self) -> usize {
        self.words.capacity() * 8
    }

    pub(crate) fn fill(
        &mut self,
        frame: &[u8],
        dictionary: &Dictionary,
    ) -> std::result::Result<&[u8], String> {
        // A decoder would take several frames, and skip some, in bytes that are one value.
        if !frame.starts_with(&MAGIC)
            || zstd_safe::find_frame_compressed_size(frame) != Ok(frame.len())
        {
            return Err("no frame, or more than one".to_owned());
        }
        let len = match zstd_safe::get_frame_content_size(frame) {
            Ok(Some(len)) if len <= limits::DECOMPRESSED_LEN => len as usize,
            Ok(Some(len)) => return Err(format!("one of {len} bytes")),
            Ok(None) | Err(_) => return Err("no frame that tells its length".to_owned()),
        };
        self.words.clear();
        self.words.resize(len.div_ceil(8), 0.0);
        let room = &mut cast::to_bytes_mut(&mut self.words)[..len];
        let context = self.context.get_or_insert_with(DCtx::create);
        let written = match &dictionary.0 {
            Some(dictionary) => context.decompress_using_ddict(room, frame, dictionary.as_ddict()),
            None => context.decompress(room, frame),
        };
        match written {
            Ok(written) if written == len => Ok(&cast::to_bytes(&self.words)[..len]),
            Ok(written) => Err(format!("one of {written} bytes that claims {len}")),
            Err(code) => Err(zstd_safe::get_error_name(code).to_owned()),
        }
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("bytes", &(self.words.len() * 8)).finish_non_exhaustive()
    }
}

/// What the compressors of one build share.
pub(crate) struct Settings {
    level: Option<i32>,
    dictionary: Option<EncoderDictionary<'static>>,
}

impl Settings {
    /// Trains a dictionary, if values are compressed and there are enough of them, and answers it
    /// as the file holds it: empty for none. A function of the entries alone.
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

/// A dictionary for the first values in the order of the file, which is as good as random.
fn train(sorted: &Sorted, blobs: &SpillFile) -> Result<Vec<u8>> {
    let mut sample = Vec::new();
    let mut lens = Vec::new();
    for slice in 0..1_usize << sorted.bits() {
        let slice = sorted.slices(slice..slice + 1)?;
        for at in slice.refs.iter() {
            let row = slice.buffers().row(*at);
            if worth_trying(&row)
                && row.value_len <= SAMPLE_VALUE_LEN
                && sample.len() < SAMPLE_BYTES
            {
                sample.extend_from_slice(&row.value(blobs)?);
                lens.push(row.value_len as usize);
            }
        }
        if sample.len() >= SAMPLE_BYTES {
            break;
        }
    }
    if lens.len() < SAMPLE_MIN {
        return Ok(Vec::new());
    }
    // A tenth of the sample at most, or the dictionary would cost what it saves.
    let len = DICTIONARY_LEN.min(sample.len() / 10);
    // Training refuses samples it finds nothing in; then there is no dictionary.
    Ok(zstd::dict::from_continuous(&sample, &lens, len).unwrap_or_default())
}

fn worth_trying(row: &Row<'_>) -> bool {
    (COMPRESS_MIN..=limits::DECOMPRESSED_LEN).contains(&row.value_len)
        && !matches!(row.value_type, ValueType::Bool | ValueType::I64 | ValueType::F64)
}

fn failed(error: std::io::Error) -> Error {
    Error::io(Path::new("zstd"), "compress", error)
}

/// Compresses values. One for each thread.
pub(crate) struct Compressor<'a> {
    zstd: Option<zstd::bulk::Compressor<'a>>,
    blobs: &'a SpillFile,
}

impl Compressor<'_> {
    /// Whether the row's value is compressed if that pays.
    pub(crate) fn tries(&self, row: &Row<'_>) -> bool {
        self.zstd.is_some() && worth_trying(row)
    }

    /// The row's value as a zstd frame, if that saves an eighth.
    pub(crate) fn compress(&mut self, row: &Row<'_>) -> Result<Option<Vec<u8>>> {
        let Some(zstd) = self.zstd.as_mut().filter(|_| worth_trying(row)) else {
            return Ok(None);
        };
        let bytes = row.value(self.blobs)?;
        let frame = zstd.compress(&bytes).map_err(failed)?;
        Ok((frame.len() <= bytes.len() - bytes.len() / 8).then_some(frame))
    }
}
