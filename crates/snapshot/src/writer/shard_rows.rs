//! The rows of a set of shards on their way to the shards' files.
//!
//! Rows are encoded into a buffer of each shard. A full buffer is appended to one temporary file as
//! a piece. When all rows are added, the shards are built one after the other from their pieces,
//! each within the whole memory budget.

use super::batch::EncodedRows;
use super::row::Encoder;
use super::rows::Rows;
use super::spill::SpillFile;
use crate::error::{Error, Result};
use crate::values::Value;
use std::path::Path;

/// Minimum length in bytes of a piece. Shorter ones would make reading slow.
const MIN_PIECE_LEN: usize = 4 << 10;
/// Maximum length in bytes of a piece.
const MAX_PIECE_LEN: usize = 1 << 20;

/// The rows added so far, by shard.
pub(crate) struct ShardRows {
    shards: Vec<Shard>,
    pieces: SpillFile,
    /// Length in bytes at which the buffer of a shard is written.
    piece_len: usize,
    count: u64,
}

/// The rows of one shard.
#[derive(Default)]
struct Shard {
    buffer: EncodedRows,
    pieces: Vec<Piece>,
    count: u64,
}

/// Rows in the temporary file.
#[derive(Clone, Copy)]
struct Piece {
    offset: u64,
    len: usize,
    rows: u64,
    weight: u64,
}

impl ShardRows {
    /// Returns an empty container for `shards` shards that takes up to a quarter of `memory` bytes.
    ///
    /// # Errors
    /// Returns [`Error::Limit`] if the memory does not suffice for this number of shards, or
    /// [`Error::Io`] if the temporary file cannot be created.
    pub(crate) fn new(folder: &Path, shards: u32, memory: usize) -> Result<Self> {
        let max = memory / 4 / MIN_PIECE_LEN;
        if shards as usize > max {
            return Err(Error::limit(
                "shards within this memory budget (16 KiB for each)",
                max as u64,
                u64::from(shards),
            ));
        }
        Ok(Self {
            shards: std::iter::repeat_with(Shard::default).take(shards as usize).collect(),
            pieces: SpillFile::create(folder)?,
            piece_len: (memory / 4 / shards as usize).min(MAX_PIECE_LEN),
            count: 0,
        })
    }

    /// Returns the number of rows, duplicates included.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of shards.
    pub(crate) fn shards(&self) -> u32 {
        self.shards.len() as u32
    }

    /// Adds a row.
    pub(crate) fn push(
        &mut self,
        encoder: &Encoder,
        position: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<()> {
        let shard = encoder.shard(key, self.shards());
        let shard = &mut self.shards[shard as usize];
        shard.buffer.push(encoder, position, key, value)?;
        self.count += 1;
        shard.write_if_full(&self.pieces, self.piece_len)
    }

    /// Adds the rows of a shard in a batch.
    pub(crate) fn add(&mut self, shard: usize, rows: &EncodedRows) -> Result<()> {
        self.count += rows.rows;
        let shard = &mut self.shards[shard];
        shard.buffer.append(rows);
        shard.write_if_full(&self.pieces, self.piece_len)
    }

    /// Moves the rows of a shard to `rows`. Returns their number.
    pub(crate) fn take(&mut self, shard: u32, rows: &mut Rows) -> Result<u64> {
        let shard = std::mem::take(&mut self.shards[shard as usize]);
        let mut piece = EncodedRows::default();
        for Piece { offset, len, rows: count, weight } in shard.pieces {
            piece.bytes.resize(len, 0);
            self.pieces.read_at(&mut piece.bytes, offset)?;
            (piece.rows, piece.weight) = (count, weight);
            rows.add(&piece)?;
        }
        rows.add(&shard.buffer)?;
        Ok(shard.count + shard.buffer.rows)
    }
}

impl Shard {
    fn write_if_full(&mut self, file: &SpillFile, piece_len: usize) -> Result<()> {
        let EncodedRows { bytes, rows, weight } = &mut self.buffer;
        if bytes.len() < piece_len {
            return Ok(());
        }
        let offset = file.append(bytes)?;
        self.pieces.push(Piece { offset, len: bytes.len(), rows: *rows, weight: *weight });
        self.count += *rows;
        bytes.clear();
        (*rows, *weight) = (0, 0);
        Ok(())
    }
}
