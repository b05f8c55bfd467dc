//! Batches of rows that other threads fill for the writer.

use super::row::Encoder;
use crate::error::{Error, Result};
use crate::values::Value;

/// Number of bytes of rows at which a batch is full.
const FULL_BYTES: usize = 1 << 20;

/// A batch of rows for a [`Writer`](crate::Writer), from [`Writer::batch`](crate::Writer::batch).
///
/// Each thread that parses input fills a batch and passes it to the thread of the writer. The order
/// in which batches are appended decides which of several rows with the same key is first.
#[derive(Debug)]
pub struct Batch {
    /// The rows of each shard; one element for a file without shards.
    shards: Vec<EncodedRows>,
    rows: u64,
    /// Number of bytes of all rows.
    bytes: usize,
    encoder: Encoder,
}

/// Encoded rows, one after the other.
#[derive(Debug, Default)]
pub(crate) struct EncodedRows {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: u64,
    /// Total [weight](super::row::Row::weight) of the rows.
    pub(crate) weight: u64,
}

impl EncodedRows {
    /// Encodes a row and appends it.
    pub(crate) fn push(
        &mut self,
        encoder: &Encoder,
        position: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<()> {
        let max = u64::from(u32::MAX);
        let found = self.bytes.len() as u64;
        if found > max {
            return Err(Error::limit("bytes of one batch before its last row", max, found));
        }
        self.weight += encoder.encode(position, key, value, &mut self.bytes)?;
        self.rows += 1;
        Ok(())
    }

    /// Appends other rows.
    pub(crate) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.rows += other.rows;
        self.weight += other.weight;
    }
}

impl Batch {
    /// Returns an empty batch for a file, or for a set of `shards` shards if this is not 0.
    pub(crate) fn new(encoder: Encoder, shards: u32) -> Self {
        let shards = std::iter::repeat_with(EncodedRows::default).take(shards.max(1) as usize);
        Self { shards: shards.collect(), rows: 0, bytes: 0, encoder }
    }

    /// Returns another empty batch for the same writer, for threads without access to it.
    #[must_use]
    pub fn another(&self) -> Self {
        let shards = if self.shards.len() > 1 { self.shards.len() as u32 } else { 0 };
        Self::new(self.encoder.clone(), shards)
    }

    /// Returns whether the writer with this encoder made the batch.
    pub(crate) fn is_from(&self, encoder: &Encoder) -> bool {
        self.encoder.is_same(encoder)
    }

    /// Adds a row. Its position is its index in the batch.
    ///
    /// # Errors
    /// Returns the same errors as [`push_with_position`](Self::push_with_position).
    pub fn push(&mut self, key: &[u8], value: Value<'_>) -> Result<()> {
        self.push_with_position(self.rows, key, value)
    }

    /// Adds a row with its position in the input, such as a line number. The error about a
    /// duplicate key reports positions.
    ///
    /// # Errors
    /// Returns [`Error::Limit`] if the key or the value is too long or the batch exceeds 4 GiB, and
    /// [`Error::Io`] if a long value cannot be written to a temporary file.
    pub fn push_with_position(
        &mut self,
        position: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<()> {
        let rows = match &mut self.shards[..] {
            [rows] => rows,
            shards => &mut shards[self.encoder.shard(key, shards.len() as u32) as usize],
        };
        let before = rows.bytes.len();
        rows.push(&self.encoder, position, key, value)?;
        self.bytes += rows.bytes.len() - before;
        self.rows += 1;
        Ok(())
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns whether the batch has at least 1 MiB of rows and should be appended to the writer.
    /// More rows can be added, but take more memory.
    pub fn is_full(&self) -> bool {
        self.bytes >= FULL_BYTES
    }

    /// Returns the rows of each shard; one element for a file without shards.
    pub(crate) fn shards(&self) -> &[EncodedRows] {
        &self.shards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::spill::SpillFile;
    use std::sync::Arc;

    /// Offsets of rows in a buffer have 32 bits; a larger offset would refer to another buffer.
    #[test]
    fn a_batch_beyond_4_gib_accepts_no_more_rows() -> Result<()> {
        let blobs = Arc::new(SpillFile::create(&std::env::temp_dir())?);
        let mut batch = Batch::new(Encoder::new(0, blobs), 0);
        batch.push(b"key", Value::Bool(true))?;
        // Untouched zero pages take no memory.
        batch.shards[0].bytes = vec![0; 1 << 32];
        let Err(Error::Limit(limit)) = batch.push(b"other", Value::Bool(true)) else {
            panic!("a limit")
        };
        assert_eq!((limit.max, limit.found), (u64::from(u32::MAX), 1 << 32));
        Ok(())
    }
}
