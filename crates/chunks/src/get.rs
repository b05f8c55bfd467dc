//! Reading chunks.

use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::plan::{Lengths, Lookup, Piece};
use crate::ranges::check_range;
use crate::view::View;
use nuthatch_segments::ReadError;
use std::ops::Range;

/// The bytes of consecutive chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The bytes.
    pub data: Vec<u8>,
    /// The beginning of each chunk in the bytes, and the end of the last one.
    pub offsets: Vec<u64>,
}

impl Chunks {
    /// Reads chunks into a new buffer.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Range`] if the range is empty.
    pub fn get(&self, key: &Key, range: Range<u64>) -> Result<Lookup<Read>> {
        check_range(&range, u64::MAX)?;
        Ok(self.with_plan(key, &range, Lengths::Any, |pieces| {
            let len: u64 = pieces.iter().map(Piece::len).sum();
            let mut data = vec![0; len as usize];
            read_pieces(pieces, 0, &mut data)?;
            Ok(Read { data, offsets: offsets_of(pieces) })
        }))
    }

    /// Reads chunks into the beginning of a buffer. Returns the beginning of each chunk there, and
    /// the end of the last one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Range`] if the range is empty, and [`Error::Buffer`] if the buffer is too
    /// short.
    pub fn get_into(
        &self,
        key: &Key,
        range: Range<u64>,
        out: &mut [u8],
    ) -> Result<Lookup<Vec<u64>>> {
        check_range(&range, u64::MAX)?;
        let mut short = None;
        let read = self.with_plan(key, &range, Lengths::Any, |pieces| {
            let len: u64 = pieces.iter().map(Piece::len).sum();
            match out.get_mut(..len as usize) {
                Some(out) => read_pieces(pieces, 0, out)?,
                None => short = Some(len),
            }
            Ok(offsets_of(pieces))
        });
        match short {
            Some(expected) => Err(Error::Buffer { expected, found: out.len() as u64 }),
            None => Ok(read),
        }
    }

    /// Returns a view of chunks in the files of the cache.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Range`] if the range is empty.
    pub fn view(&self, key: &Key, range: Range<u64>) -> Result<Lookup<View>> {
        check_range(&range, u64::MAX)?;
        Ok(self.with_plan(key, &range, Lengths::Any, |pieces| {
            let len = pieces.iter().map(Piece::len).sum();
            View::new(pieces, 0..len)
        }))
    }

    /// Returns the missing chunks of a range, without reading any.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Range`] if the range is empty.
    pub fn missing(&self, key: &Key, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        check_range(&range, u64::MAX)?;
        Ok(self.plan(key, range, Lengths::Any).missing().to_vec())
    }
}

/// Copies the bytes of pieces, after the first `skip` bytes, until the buffer is full.
///
/// # Errors
///
/// Returns [`ReadError`] if a piece cannot be read.
pub(crate) fn read_pieces(
    pieces: &[Piece<'_>],
    skip: u64,
    out: &mut [u8],
) -> std::result::Result<(), ReadError> {
    let mut rest = out;
    let mut skip = skip;
    for piece in pieces {
        let bytes = piece.bytes();
        let len = (bytes.end - bytes.start - skip).min(rest.len() as u64);
        let (piece_out, rest_out) = rest.split_at_mut(len as usize);
        piece.found.read(bytes.start + skip, piece_out)?;
        rest = rest_out;
        skip = 0;
    }
    Ok(())
}

/// Returns the beginning of each chunk, and the end of the last one.
fn offsets_of(pieces: &[Piece<'_>]) -> Vec<u64> {
    let mut offsets = vec![0];
    let mut end = 0;
    for piece in pieces {
        for chunk in piece.chunks.clone() {
            end += piece.found.part_len(chunk);
            offsets.push(end);
        }
    }
    offsets
}
