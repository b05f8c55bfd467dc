//! Placement of the rows of a partition in the lines of the index.

use super::plan::Shape;
use super::row::RowRef;
use crate::error::{Error, Result};
use crate::format::hash::KeyHash;
use crate::format::layout::{limits, line};
use std::ops::Range;

/// The rows of each line of one partition. A row is identified by its index in the sorted rows of
/// the partition.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// `homes[i]` is the first row whose home is line `i`. Home rows beyond the slots of a line are
    /// in `moved`.
    homes: Vec<u32>,
    /// Pairs of line and row for the rows that are moved past their full home line, sorted by line.
    moved: Vec<(u32, u32)>,
    /// Overflow bits of each line.
    overflow: Vec<u8>,
    /// Maximum number of lines from the home line of a row to the line that holds it.
    pub(crate) max_probe: u32,
}

impl Placement {
    /// Places rows that are sorted by hash. Each line takes the first of its home rows, up to its
    /// number of slots. Then each remaining row, in order, takes a slot of the next line with a
    /// free one.
    ///
    /// # Errors
    /// Returns [`Error::Limit`] if a row would be further from its home line than the format
    /// allows.
    pub(crate) fn of(refs: &[RowRef], shape: Shape) -> Result<Self> {
        let lines = shape.lines_per_partition as usize;
        let all_lines = u64::from(shape.lines_per_partition) << shape.partition_bits;
        let mut homes = Vec::with_capacity(lines + 1);
        for (row, at) in refs.iter().enumerate() {
            let home = KeyHash(at.hash).line(all_lines) as usize % lines;
            homes.resize((home + 1).max(homes.len()), row as u32);
        }
        homes.resize(lines + 1, refs.len() as u32);
        let mut placement = Self { homes, overflow: vec![0; lines], ..Self::default() };
        placement.move_overflowing_rows(refs)?;
        Ok(placement)
    }

    /// Places the rows that do not fit in their home line.
    fn move_overflowing_rows(&mut self, refs: &[RowRef]) -> Result<()> {
        let lines = self.overflow.len();
        let mut free_slots: Vec<u8> =
            (0..lines).map(|line| (line::SLOTS - self.home_rows(line).len()) as u8).collect();
        for home in 0..lines {
            for row in self.home_rows(home).end..self.homes[home + 1] {
                let bit = KeyHash(refs[row as usize].hash).overflow_bit();
                let mut line = home;
                let mut probe = 0;
                while free_slots[line] == 0 {
                    self.overflow[line] |= bit;
                    line = (line + 1) % lines;
                    probe += 1;
                    if probe > limits::MAX_PROBE {
                        let max = u64::from(limits::MAX_PROBE);
                        let what =
                            "index lines between a key and its home line (choose another seed)";
                        return Err(Error::limit(what, max, u64::from(probe)));
                    }
                }
                free_slots[line] -= 1;
                self.max_probe = self.max_probe.max(probe);
                self.moved.push((line as u32, row));
            }
        }
        // The sort is stable: the rows that are moved to the same line stay in order.
        self.moved.sort_by_key(|(line, _)| *line);
        Ok(())
    }

    /// Returns the home rows that a line holds.
    fn home_rows(&self, line: usize) -> Range<u32> {
        let (start, end) = (self.homes[line], self.homes[line + 1]);
        start..end.min(start + line::SLOTS as u32)
    }

    /// Calls `write` for every line, in order, with its rows and its overflow bits.
    pub(crate) fn for_each_line(
        &self,
        mut write: impl FnMut(&[u32], u8) -> Result<()>,
    ) -> Result<()> {
        let mut moved = self.moved.iter().peekable();
        let mut rows = Vec::with_capacity(line::SLOTS);
        for (line, overflow) in self.overflow.iter().enumerate() {
            rows.clear();
            rows.extend(self.home_rows(line));
            while let Some((_, row)) = moved.next_if(|(to, _)| *to as usize == line) {
                rows.push(*row);
            }
            write(&rows, *overflow)?;
        }
        Ok(())
    }
}
