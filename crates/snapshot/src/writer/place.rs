//! Which line of the index each row of a partition goes to.

use super::plan::Shape;
use super::row::RowRef;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::layout::{limits, line};
use std::ops::Range;

/// The rows of each line of one partition. Rows are named by their place in the partition.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    /// Home rows of line `i` begin at `homes[i]`; those beyond the line's slots are in `moved`.
    homes: Vec<u32>,
    /// Rows that found their home line full: their line, and the row. In order.
    moved: Vec<(u32, u32)>,
    overflow: Vec<u8>,
    pub(crate) max_probe: u32,
}

impl Placement {
    /// Places rows sorted by hash: each line takes the first of its home rows, as many as it has
    /// slots, and then the rest go, in order, to the next line with room.
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
        placement.move_on(refs)?;
        Ok(placement)
    }

    fn move_on(&mut self, refs: &[RowRef]) -> Result<()> {
        let lines = self.overflow.len();
        let mut room: Vec<u8> =
            (0..lines).map(|line| (line::SLOTS - self.home_rows(line).len()) as u8).collect();
        for home in 0..lines {
            for row in self.home_rows(home).end..self.homes[home + 1] {
                let bit = KeyHash(refs[row as usize].hash).overflow_bit();
                let mut line = home;
                let mut probe = 0;
                while room[line] == 0 {
                    self.overflow[line] |= bit;
                    line = (line + 1) % lines;
                    probe += 1;
                    if probe > limits::MAX_PROBE {
                        let most = u64::from(limits::MAX_PROBE);
                        let what = "index lines between a key and its home (choose another seed)";
                        return Err(Error::limit(what, most, u64::from(probe)));
                    }
                }
                room[line] -= 1;
                self.max_probe = self.max_probe.max(probe);
                self.moved.push((line as u32, row));
            }
        }
        // Stable: the rows that moved to one line stay in order.
        self.moved.sort_by_key(|(line, _)| *line);
        Ok(())
    }

    fn home_rows(&self, line: usize) -> Range<u32> {
        let (start, end) = (self.homes[line], self.homes[line + 1]);
        start..end.min(start + line::SLOTS as u32)
    }

    /// Calls `write` for every line, in order, with the numbers of its rows and its overflow bits.
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
