//! The contexts of zstd that a thread reuses, and the calls that compress and decompress a value.

use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::format::{Header, rewrite_frame};
use std::fmt;
use std::io::Cursor;
use zstd::zstd_safe::{CCtx, DCtx, DParameter, FrameFormat, compress_bound, get_error_name};

/// A compressed value must be shorter than the raw one by this part of it, 1/16. Otherwise the
/// value is stored raw, and reading it needs no decompression.
const MIN_SAVED_RATIO: usize = 16;

/// Room behind a raw value, in bytes. zstd copies in steps of 16 and 32 bytes, and takes longer for
/// the end of a value if the buffer ends with it.
const SPARE_BYTES: usize = 64;

/// The contexts of one thread.
pub(crate) struct Contexts {
    compression: CCtx<'static>,
    decompression: DCtx<'static>,
}

impl Contexts {
    /// Creates the contexts. Their tables are allocated with the first value.
    pub(crate) fn new() -> Result<Self> {
        let out_of_memory = || Error::OutOfMemory { purpose: "a context of zstd", bytes: 0 };
        let compression = CCtx::try_create().ok_or_else(out_of_memory)?;
        let mut decompression = DCtx::try_create().ok_or_else(out_of_memory)?;
        let format = DParameter::Format(FrameFormat::Magicless);
        decompression.set_parameter(format).map_err(|_| out_of_memory())?;
        Ok(Self { compression, decompression })
    }

    /// Returns the memory of the contexts in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.compression.sizeof() + self.decompression.sizeof()
    }

    /// Compresses a value, and returns its encoded form in `buffer`. Returns `None` if compression
    /// does not save enough, if memory for it could not be allocated, or if the dictionary is only
    /// for reading. `level` is that of values
    /// without a dictionary.
    pub(crate) fn compress<'b>(
        &mut self,
        raw: &[u8],
        level: i32,
        dictionary: Option<&Dictionary>,
        buffer: &'b mut Vec<u8>,
    ) -> Option<&'b [u8]> {
        buffer.clear();
        buffer.try_reserve(compress_bound(raw.len())).ok()?;
        // An error is that of an allocation: the buffer is long enough for any value.
        match dictionary {
            Some(dictionary) => {
                let prepared = dictionary.compression()?;
                self.compression.compress_using_cdict(buffer, raw, prepared).ok()?
            }
            None => self.compression.compress(buffer, raw, level).ok()?,
        };
        let id = dictionary.map_or(0, |dictionary| dictionary.id().get());
        let start = rewrite_frame(buffer, id)?;
        let encoded = &buffer[start..];
        let max_len = raw.len() - raw.len().div_ceil(MIN_SAVED_RATIO);
        (encoded.len() <= max_len).then_some(encoded)
    }

    /// Appends the raw value of an encoded one. The caller has checked the length against its
    /// limit. Nothing is appended if there is an error.
    pub(crate) fn decompress(
        &mut self,
        header: &Header<'_>,
        dictionary: Option<&Dictionary>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        header.check_blocks()?;
        let Header { raw_len, frame, .. } = *header;
        let out_of_memory = || Error::OutOfMemory { purpose: "a raw value", bytes: raw_len };
        let len = usize::try_from(raw_len).map_err(|_| out_of_memory())?;
        out.try_reserve(len.saturating_add(SPARE_BYTES)).map_err(|_| out_of_memory())?;
        let start = out.len();
        let mut end = Cursor::new(&mut *out);
        end.set_position(start as u64);
        let written = match dictionary {
            Some(dictionary) => self.decompression.decompress_using_ddict(
                &mut end,
                frame,
                dictionary.decompression(),
            ),
            None => self.decompression.decompress(&mut end, frame),
        };
        let message = match written {
            Ok(written) if written == len => return Ok(()),
            Ok(written) => format!("{written} bytes"),
            Err(code) => get_error_name(code).to_owned(),
        };
        out.truncate(start);
        Err(Error::Damaged { raw_len, message })
    }
}

impl fmt::Debug for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contexts").finish_non_exhaustive()
    }
}
