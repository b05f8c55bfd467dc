//! Parsed rows as batches of a snapshot writer, each with its position in the inputs.

use crate::sink::RowSink;
use nuthatch_snapshot::{Batch, Value};

/// Adds rows to a batch of the writer, with their positions.
#[derive(Debug)]
pub(crate) struct BatchSink {
    pub(crate) batch: Batch,
    pub(crate) input: u16,
}

impl RowSink for BatchSink {
    #[inline]
    fn row(
        &mut self,
        line: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        self.batch.push_with_position(RowPosition { input: self.input, line }.pack(), key, value)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.batch.is_full()
    }
}

/// The position of a row: the number of its input and its line. Packed into 64 bits, as the writer
/// stores it: 16 bits for the input and 48 bits for the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowPosition {
    pub(crate) input: u16,
    pub(crate) line: u64,
}

impl RowPosition {
    const LINE_BITS: u32 = 48;

    pub(crate) fn pack(self) -> u64 {
        u64::from(self.input) << Self::LINE_BITS | (self.line & ((1 << Self::LINE_BITS) - 1))
    }

    pub(crate) fn unpack(packed: u64) -> Self {
        let line = packed & ((1 << Self::LINE_BITS) - 1);
        Self { input: (packed >> Self::LINE_BITS) as u16, line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_positions_are_unpacked() {
        for (input, line) in [(0, 1), (65_535, (1 << 48) - 1), (3, 1_000_000_007)] {
            let position = RowPosition { input, line };
            assert_eq!(RowPosition::unpack(position.pack()), position);
        }
    }
}
