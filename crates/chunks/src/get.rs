//! Reading chunks of objects.

use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::plan::{Lengths, Lookup, Piece};
use crate::ranges::check_range;
use crate::view::View;
use nuthatch_segments::Unread;
use std::ops::Range;

/// Bytes of chunks that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The bytes.
    pub data: Vec<u8>,
    /// Where in them each chunk begins, and where the last one ends: one more than there are
    /// chunks.
    pub offsets: Vec<u64>,
}

impl Chunks {
    /// Reads chunks into a buffer of their own.
    pub fn get(&self, key: &Key, range: Range<u64>) -> Result<Lookup<Read>> {
        check_range(&range, u64::MAX)?;
        Ok(self.with_plan(key, &range, Lengths::Any, |pieces| {
            let len: u64 = pieces.iter().map(Piece::len).sum();
            let mut data = vec![0; len as usize];
            read_pieces(pieces, 0, &mut data)?;
            Ok(Read { data, offsets: offsets_of(pieces) })
        }))
    }

    /// Reads chunks into the beginning of a buffer. Answers where each of them begins there, and
    /// where the last one ends.
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

    /// Lends chunks from where they lie.
    pub fn view(&self, key: &Key, range: Range<u64>) -> Result<Lookup<View>> {
        check_range(&range, u64::MAX)?;
        Ok(self.with_plan(key, &range, Lengths::Any, |pieces| {
            let len = pieces.iter().map(Piece::len).sum();
            View::new(pieces, 0..len)
        }))
    }

    /// Which chunks of a range are missing, without reading any.
    pub fn missing(&self, key: &Key, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        check_range(&range, u64::MAX)?;
        Ok(self.plan(key, range, Lengths::Any).missing().to_vec())
    }
}

/// Copies bytes of pieces, without so many at the beginning, until the buffer is full.
pub(crate) fn read_pieces(
    pieces: &[Piece<'_>],
    skip: u64,
    out: &mut [u8],
) -> std::result::Result<(), Unread> {
    let mut rest = out;
    let mut skip = skip;
    for piece in pieces {
        let bytes = piece.bytes();
        let len = (bytes.end - bytes.start - skip).min(rest.len() as u64);
        let (here, later) = rest.split_at_mut(len as usize);
        piece.found.read(bytes.start + skip, here)?;
        rest = later;
        skip = 0;
    }
    Ok(())
}

fn offsets_of(pieces: &[Piece<'_>]) -> Vec<u64> {
    let mut offsets = vec![0];
    let mut end = 0;
    for piece in pieces {
        for chunk in piece.chunks.clone() {
            end += piece.found.len_of(chunk);
            offsets.push(end);
        }
    }
    offsets
}
