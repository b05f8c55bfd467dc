//! Rows collected by one thread before they go to the writer.

use super::row::Encoder;
use crate::error::{Error, Result};
use crate::value::Value;

/// A batch is full at this many bytes of rows.
const FULL: usize = 1 << 20;

/// Rows on their way to a [`Writer`](crate::Writer). Threads that parse input each fill their own
/// and hand them over in the order that decides between duplicates.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    rows: u64,
    weight: u64,
    encoder: Encoder,
}

impl Batch {
    pub(crate) fn new(encoder: Encoder) -> Self {
        Self { bytes: Vec::new(), rows: 0, weight: 0, encoder }
    }

    /// Adds a row. The origin, which errors about duplicates name, is its number in the batch.
    pub fn push(&mut self, key: &[u8], value: Value<'_>) -> Result<()> {
        self.push_from(self.rows, key, value)
    }

    /// Adds a row that came from somewhere: a line number, say. Errors about duplicates name it.
    pub fn push_from(&mut self, origin: u64, key: &[u8], value: Value<'_>) -> Result<()> {
        let most = u64::from(u32::MAX);
        if self.bytes.len() as u64 > most {
            let found = self.bytes.len() as u64;
            return Err(Error::limit("bytes of one batch before its last row", most, found));
        }
        self.weight += self.encoder.encode(origin, key, value, &mut self.bytes)?;
        self.rows += 1;
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether it is time to hand the batch over. A batch that is fuller works, and costs memory.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// What all rows weigh.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::SpillFile;
    use std::sync::Arc;

    /// Places of rows within a buffer have 32 bits; more would name rows of other buffers.
    #[test]
    fn a_batch_beyond_4_gib_takes_no_more_rows() -> Result<()> {
        let blobs = Arc::new(SpillFile::create(&std::env::temp_dir())?);
        let mut batch = Batch::new(Encoder::new(0, blobs));
        batch.push(b"key", Value::Bool(true))?;
        // Zeros that nobody looks at take no memory.
        batch.bytes = vec![0; 1 << 32];
        let Err(Error::Limit(limit)) = batch.push(b"other", Value::Bool(true)) else {
            panic!("a limit")
        };
        assert_eq!((limit.most, limit.found), (u64::from(u32::MAX), 1 << 32));
        Ok(())
    }
}
