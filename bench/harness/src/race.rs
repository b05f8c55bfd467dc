//! Systems that alternate in rounds, so that disturbances of the machine affect all of them.

use crate::Result;
use crate::entrant::{Entrant, Sample};
use crate::hash_map::HashMap;
use crate::lookups::Keys;
use crate::report::Figure;
use crate::rows::Rows;
use crate::system::System;
use crate::work::Work;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) struct Race<'a> {
    entrants: Vec<Box<dyn Entrant>>,
    directory: &'a Path,
    rounds: usize,
    /// Samples by workload and index of the system.
    samples: BTreeMap<(Work, usize), Vec<f64>>,
}

impl<'a> Race<'a> {
    pub(crate) fn new(entrants: Vec<Box<dyn Entrant>>, directory: &'a Path, rounds: usize) -> Self {
        Self { entrants, directory, rounds, samples: BTreeMap::new() }
    }

    /// Fills every system with the rows, once per round.
    pub(crate) fn build(&mut self, rows: &Rows) -> Result<()> {
        let directory = self.directory;
        self.run_rounds(|entrant| entrant.build(rows, directory))
    }

    /// Opens the files of every system, once per round.
    pub(crate) fn open(&mut self) -> Result<()> {
        let directory = self.directory;
        self.run_rounds(|entrant| entrant.open(directory))
    }

    /// Looks up all keys in every workload. An untimed pass before it maps the pages.
    pub(crate) fn look_up(&mut self, works: &[Work], keys: &Keys<'_>) -> Result<()> {
        for entrant in &self.entrants {
            entrant.look_up(works[0], keys)?;
        }
        for work in works {
            self.run_rounds(|entrant| Ok(entrant.look_up(*work, keys)?.into_iter().collect()))?;
        }
        Ok(())
    }

    /// Calls every system in each round. Each round starts with another system, since a system
    /// finds the processor caches as the previous one left them.
    fn run_rounds(
        &mut self,
        mut run: impl FnMut(&mut dyn Entrant) -> Result<Vec<Sample>>,
    ) -> Result<()> {
        let count = self.entrants.len();
        for round in 0..self.rounds {
            for at in (0..count).map(|at| (at + round) % count) {
                for (work, sample) in run(&mut *self.entrants[at])? {
                    self.samples.entry((work, at)).or_default().push(sample);
                }
            }
        }
        Ok(())
    }

    /// Returns the median results, by workload and then by system.
    pub(crate) fn figures(self, keys: u32) -> Vec<Figure> {
        let medians: BTreeMap<_, f64> =
            self.samples.into_iter().map(|(at, samples)| (at, middle(at.0, samples))).collect();
        let hash_map = self.entrants.iter().position(|entrant| entrant.name() == HashMap::NAME);
        let figure = |(&(work, at), &value): (&(Work, usize), &f64)| {
            let against = |work, at| {
                // With few rows, the memory of a system may be too small to measure.
                let other = medians.get(&(work, at)).filter(|other| **other > 0.0);
                other.map(|other| value / other)
            };
            let own = work.is_compared_to_own_hit().then_some(Work::GetHit);
            Figure {
                work,
                system: self.entrants[at].name(),
                keys,
                rounds: self.rounds,
                value,
                times_hash_map: hash_map.and_then(|map| against(work.of_hash_map(), map)),
                times_own_hit: own.and_then(|hit| against(hit, at)),
            }
        };
        medians.iter().map(figure).collect()
    }
}

/// Returns the median, or the maximum for memory. A process often keeps the memory of an earlier
/// round, so that later rounds need none.
fn middle(work: Work, mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    let count = samples.len();
    match work {
        Work::Resident => samples[count - 1],
        _ => f64::midpoint(samples[(count - 1) / 2], samples[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_the_median() {
        assert_eq!(middle(Work::GetHit, vec![9.0, 1.0, 2.0]).total_cmp(&2.0), 0.cmp(&0));
        assert_eq!(middle(Work::GetHit, vec![4.0, 1.0]).total_cmp(&2.5), 0.cmp(&0));
        assert_eq!(middle(Work::Resident, vec![0.0, 7.0, 0.0]).total_cmp(&7.0), 0.cmp(&0));
    }
}
