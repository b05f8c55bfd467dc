//! Objects of blocks: byte ranges of an object with an address and a validator.

use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::get::read_pieces;
use crate::key::Key;
use crate::plan::{Lengths, Lookup, Piece};
use crate::put::Stored;
use crate::ranges::check_range;
use crate::view::View;
use std::ops::Range;

/// The default length of a block in bytes: 1 MiB.
pub const BLOCK_LEN: u64 = 1 << 20;

/// One version of an object in a cache, stored as blocks of equal length. Ranges count bytes and do
/// not include their end.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    chunks: &'a Chunks,
    key: Key,
    object_len: u64,
    block_len: u64,
}

impl Chunks {
    /// Returns the object with this address, validator, length and block length (both in bytes). A
    /// different validator, length or block length makes a different object: bytes of two objects
    /// are never mixed.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLarge`] if the block length is zero or too large, and [`Error::Key`] if
    /// the address and the validator are too long.
    pub fn blocks(
        &self,
        address: &str,
        validator: &str,
        object_len: u64,
        block_len: u64,
    ) -> Result<Blocks<'_>> {
        let max = self.max_chunk_len();
        if block_len == 0 || block_len > max {
            return Err(Error::TooLarge { len: block_len, max });
        }
        let key = Key::blocks(address, validator, object_len, block_len)?;
        Ok(Blocks { chunks: self, key, object_len, block_len })
    }
}

impl Blocks<'_> {
    /// Returns the key of the object.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the length of the object in bytes.
    pub fn object_len(&self) -> u64 {
        self.object_len
    }

    /// Returns the length of all blocks but the last in bytes.
    pub fn block_len(&self) -> u64 {
        self.block_len
    }

    /// Returns the blocks that have bytes of a range.
    fn covering(&self, range: &Range<u64>) -> Range<u64> {
        range.start / self.block_len..range.end.div_ceil(self.block_len)
    }

    /// Returns the bytes of blocks.
    fn bytes_of(&self, blocks: &Range<u64>) -> Range<u64> {
        let end = blocks.end.saturating_mul(self.block_len).min(self.object_len);
        blocks.start * self.block_len..end
    }

    fn lengths(&self) -> Lengths {
        Lengths::Blocks { object_len: self.object_len, block_len: self.block_len }
    }

    /// Converts missing blocks to bytes.
    fn in_bytes<T>(&self, lookup: Lookup<T>) -> Lookup<T> {
        match lookup {
            Lookup::Missing(blocks) => {
                Lookup::Missing(blocks.iter().map(|blocks| self.bytes_of(blocks)).collect())
            }
            found @ Lookup::Found(_) => found,
        }
    }

    /// Stores bytes from an offset on. Only blocks that `data` covers completely are stored. Blocks
    /// that are stored already are kept.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Conflict`] if a block is stored with other bytes, [`Error::Range`] if the
    /// bytes are beyond the end of the object, and errors as [`Chunks::put`] does.
    pub fn put(&self, offset: u64, data: &[u8]) -> Result<Stored> {
        self.put_until(offset, data, 0)
    }

    /// Does the same as [`Blocks::put`] for blocks that expire at `expiry`, in milliseconds since
    /// 1970; zero for never.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Blocks::put`].
    pub fn put_until(&self, offset: u64, data: &[u8], expiry: u64) -> Result<Stored> {
        let end = offset.saturating_add(data.len() as u64);
        if data.is_empty() && offset <= self.object_len {
            return Ok(Stored::default());
        }
        check_range(&(offset..end), self.object_len)?;
        let first = offset.div_ceil(self.block_len);
        let last = if end == self.object_len {
            end.div_ceil(self.block_len)
        } else {
            end / self.block_len
        };
        if first >= last {
            return Ok(Stored::default());
        }
        let bytes = self.bytes_of(&(first..last));
        let data = &data[(bytes.start - offset) as usize..(bytes.end - offset) as usize];
        let starts = (first..last).map(|block| block * self.block_len - bytes.start);
        let offsets: Vec<_> = starts.chain([data.len() as u64]).collect();
        self.chunks.put_until(&self.key, first..last, &offsets, data, expiry)
    }

    /// Reads bytes into a buffer that has the length of the range.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Range`] if the range is empty or out of bounds, and [`Error::Buffer`] if
    /// the buffer has another length.
    pub fn get_into(&self, range: Range<u64>, out: &mut [u8]) -> Result<Lookup<()>> {
        check_range(&range, self.object_len)?;
        let expected = range.end - range.start;
        if out.len() as u64 != expected {
            return Err(Error::Buffer { expected, found: out.len() as u64 });
        }
        let blocks = self.covering(&range);
        let skip = range.start - blocks.start * self.block_len;
        let read = |pieces: &[Piece<'_>]| read_pieces(pieces, skip, out);
        Ok(self.in_bytes(self.chunks.with_plan(&self.key, &blocks, self.lengths(), read)))
    }

    /// Reads bytes into a new buffer.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Range`] if the range is empty or out of bounds.
    pub fn get(&self, range: Range<u64>) -> Result<Lookup<Vec<u8>>> {
        check_range(&range, self.object_len)?;
        let missing = self.missing(range.clone())?;
        if !missing.is_empty() {
            return Ok(Lookup::Missing(missing));
        }
        let mut data = vec![0; (range.end - range.start) as usize];
        let read = self.get_into(range, &mut data)?;
        Ok(read.map(|()| data))
    }

    /// Returns a view of bytes in the files of the cache.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Blocks::get`].
    pub fn view(&self, range: Range<u64>) -> Result<Lookup<View>> {
        check_range(&range, self.object_len)?;
        let blocks = self.covering(&range);
        let skip = range.start - blocks.start * self.block_len;
        let within = skip..skip + range.end - range.start;
        let view = |pieces: &[Piece<'_>]| View::new(pieces, within.clone());
        Ok(self.in_bytes(self.chunks.with_plan(&self.key, &blocks, self.lengths(), view)))
    }

    /// Returns the bytes that have to be fetched before a range can be read: whole blocks, in
    /// order.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Blocks::get`].
    pub fn missing(&self, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        check_range(&range, self.object_len)?;
        let blocks = self.covering(&range);
        let lookup = self.chunks.plan(&self.key, blocks, self.lengths());
        Ok(self.in_bytes(lookup).missing().to_vec())
    }
}
