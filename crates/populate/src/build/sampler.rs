//! A random sample of rows, of equal chance for each: reservoir sampling by Algorithm L of Kim-Hung
//! Li, "Reservoir-Sampling Algorithms of Time Complexity O(n(1+log(N/n)))", 1994.

use nuthatch_rows::{CellBuffers, Literal, Mapping, Row};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// The values of the columns of the key in a row.
pub(crate) type SampledRow = Vec<Literal>;

/// Chooses rows of a stream.
pub(super) struct Sampler {
    size: usize,
    rows: Vec<SampledRow>,
    seen: u64,
    /// The number of the next row that is chosen.
    next: u64,
    weight: f64,
    state: u64,
    cells: CellBuffers,
}

impl Sampler {
    /// Returns a sampler of this many rows.
    pub(super) fn new(size: usize) -> Self {
        let state = RandomState::new().build_hasher().finish() | 1;
        let (rows, cells) = (Vec::new(), CellBuffers::default());
        Self { size, rows, seen: 0, next: 0, weight: 1.0, state, cells }
    }

    /// Looks at a row, and keeps the values of its key if it is chosen.
    #[inline]
    pub(super) fn offer(&mut self, mapping: &Mapping, row: &dyn Row) {
        let at = self.seen;
        self.seen += 1;
        if self.size == 0 || (self.rows.len() == self.size && at != self.next) {
            return;
        }
        let Some(literals) = mapping.key_literals(row, &mut self.cells) else {
            self.next = at + 1;
            return;
        };
        if self.rows.len() < self.size {
            self.rows.push(literals);
            if self.rows.len() == self.size {
                self.advance(at);
            }
            return;
        }
        #[expect(clippy::cast_sign_loss, reason = "a number between 0 and 1")]
        let index = (self.random() * self.size as f64) as usize;
        self.rows[index.min(self.size - 1)] = literals;
        self.advance(at);
    }

    /// Chooses the next row after this one.
    fn advance(&mut self, at: u64) {
        self.weight *= (self.random().ln() / self.size as f64).exp();
        let skip = (self.random().ln() / (1.0 - self.weight).ln()).floor();
        #[expect(clippy::cast_sign_loss, reason = "logarithms of numbers below one: both negative")]
        let skip = skip as u64;
        self.next = at.saturating_add(skip).saturating_add(1);
    }

    /// Returns a number between 0 and 1, both excluded.
    fn random(&mut self) -> f64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON / 4.0
    }

    /// Returns the sample.
    pub(super) fn take(&mut self) -> Vec<SampledRow> {
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_rows::{Cell, KeyTemplate, Nulls};
    use nuthatch_snapshot::Value;
    use std::collections::BTreeMap;

    struct Number(i64);

    impl Row for Number {
        fn cell<'r>(&'r self, _: usize, _: &'r mut CellBuffers) -> Result<Cell<'r>, String> {
            Ok(Cell::Value(Value::I64(self.0)))
        }
    }

    #[test]
    fn each_part_of_the_rows_is_chosen() {
        let names = ["id".to_owned(), "value".to_owned()];
        let template = KeyTemplate::parse("{id}").expect("a template");
        let mapping = Mapping::new(&names, &template, &[], &BTreeMap::new(), Nulls::Absent);
        let (mapping, mut sampler) = (mapping.expect("a mapping"), Sampler::new(1000));
        for row in 0..100_000 {
            sampler.offer(&mapping, &Number(row));
        }
        let rows = sampler.take();
        assert_eq!(rows.len(), 1000);
        let mut tenths = [0; 10];
        for row in rows {
            let [Literal::Int(id)] = row[..] else { panic!("an integer") };
            tenths[usize::try_from(id / 10_000).expect("no sign")] += 1;
        }
        // The chance of a tenth with fewer than 40 or more than 160 is below 10^-9.
        assert!(tenths.iter().all(|count| (40..160).contains(count)), "{tenths:?}");
    }
}
