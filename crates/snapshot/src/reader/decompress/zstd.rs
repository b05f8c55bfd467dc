//! Decompression of zstd frames.

use crate::error::{Error, Result};
use crate::format::hash::checksum;
use crate::format::header::Header;
use crate::format::layout::{flags, header as header_at, limits};
use crate::reader::map::Map;
use crate::values::{Value, ValueType, cast};
use std::fmt;
use zstd::dict::DecoderDictionary;
use zstd::zstd_safe::{self, DCtx};

/// The first bytes of every frame with data. Skippable frames begin with other bytes.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The prepared dictionary of a file, or `None` for a file without one.
pub(crate) struct Dictionary(Option<DecoderDictionary<'static>>);

impl Dictionary {
    /// Checks and prepares the dictionary of a file.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if its checksum is wrong or it is not a zstd dictionary.
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
            return Err(Error::checksum(map.path(), at, "the dictionary", (stored, found)));
        }
        let ready = DecoderDictionary::try_copy(bytes)
            .map_err(|e| Error::corrupt(map.path(), section.offset, "a zstd dictionary", e))?;
        Ok(Self(Some(ready)))
    }
}

/// A buffer for decompressed values. A thread can use one buffer for any number of snapshots.
#[derive(Default)]
pub struct Scratch {
    /// Elements are `f64` rather than `u8` to align lists of numbers.
    words: Vec<f64>,
    context: Option<DCtx<'static>>,
}

impl Scratch {
    /// Returns an empty buffer. It grows to the largest value that it holds, at most 16 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the allocated number of bytes.
    pub fn capacity(&self) -> usize {
        self.words.capacity() * 8
    }

    /// Copies the bytes of a value into the buffer, as the format stores them without compression.
    /// Returns the value, or `None` if they are no value of the type.
    pub fn copy(&mut self, value_type: ValueType, bytes: &[u8]) -> Option<Value<'_>> {
        self.words.clear();
        self.words.resize(bytes.len().div_ceil(8), 0.0);
        cast::to_bytes_mut(&mut self.words)[..bytes.len()].copy_from_slice(bytes);
        Value::from_bytes(value_type, &cast::to_bytes(&self.words)[..bytes.len()]).ok()
    }

    /// Decompresses a frame into the buffer. Fails with a description of the frame if it is
    /// invalid.
    pub(crate) fn fill(
        &mut self,
        frame: &[u8],
        dictionary: &Dictionary,
    ) -> std::result::Result<&[u8], String> {
        // The decoder accepts several frames and skippable ones; the format requires one frame.
        if !frame.starts_with(&MAGIC)
            || zstd_safe::find_frame_compressed_size(frame) != Ok(frame.len())
        {
            return Err("no frame, or more than one".to_owned());
        }
        let len = match zstd_safe::get_frame_content_size(frame) {
            Ok(Some(len)) if len <= limits::MAX_DECOMPRESSED_LEN => len as usize,
            Ok(Some(len)) => return Err(format!("one of {len} bytes")),
            Ok(None) | Err(_) => return Err("a frame without its content length".to_owned()),
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
