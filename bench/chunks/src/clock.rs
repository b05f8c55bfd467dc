//! Measurement of workloads, and the table of results.

use crate::systems::Entrant;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The median and the minimum over the rounds. The median is the usual performance, and the minimum
/// the best performance of the machine.
#[derive(Clone, Copy)]
pub struct Figure {
    pub median: f64,
    pub min: f64,
}

/// Returns the duration of `work` in nanoseconds.
pub fn nanoseconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64
}

/// A system in a workload. The function runs a round, given its number, and returns the nanoseconds
/// per operation.
pub struct Runner<'a> {
    pub name: &'static str,
    round: Box<dyn FnMut(usize) -> f64 + 'a>,
}

impl<'a> Runner<'a> {
    /// Creates a runner whose rounds measure themselves.
    pub fn new(name: &'static str, round: impl FnMut(usize) -> f64 + 'a) -> Self {
        Self { name, round: Box::new(round) }
    }

    /// Creates a runner whose rounds consist of `count` operations. Each operation receives its
    /// number.
    pub fn each(name: &'static str, count: usize, mut work: impl FnMut(usize) + 'a) -> Self {
        Self::new(name, move |round| {
            let numbers = round * count..(round + 1) * count;
            nanoseconds(|| numbers.for_each(&mut work)) / count as f64
        })
    }
}

/// Number of gets, and number of gets that were hits.
#[derive(Default)]
pub struct Hits {
    gets: AtomicU64,
    found: AtomicU64,
}

impl Hits {
    pub fn count(&self, found: bool) {
        self.gets.fetch_add(1, Relaxed);
        self.found.fetch_add(u64::from(found), Relaxed);
    }
}

/// All results, by workload and system.
#[derive(Default)]
pub struct Sheet {
    rows: Vec<(String, &'static str, usize, Figure)>,
    notes: Vec<String>,
}

impl Sheet {
    /// Runs a workload in all systems, alternating in rounds. The first round is not measured.
    /// `bytes` is the number of bytes that an operation transfers, or zero.
    pub fn race(&mut self, work: &str, bytes: usize, rounds: usize, mut runners: Vec<Runner<'_>>) {
        let mut samples = vec![Vec::new(); runners.len()];
        for round in 0..=rounds.max(1) {
            for (runner, samples) in runners.iter_mut().zip(&mut samples) {
                let sample = (runner.round)(round);
                samples.extend((round > 0).then_some(sample));
            }
        }
        for (runner, mut samples) in runners.into_iter().zip(samples) {
            samples.sort_by(f64::total_cmp);
            let figure = Figure { median: samples[samples.len() / 2], min: samples[0] };
            eprintln!("{work:28} {:10} {:14.1} ns", runner.name, figure.median);
            self.rows.push((work.to_owned(), runner.name, bytes, figure));
        }
    }

    /// Adds a note if some of the measured gets missed. Panics if more than 0.1 % missed, unless
    /// the system may drop entries.
    pub fn note_misses(&mut self, work: &str, entrant: &Entrant, hits: &Hits) {
        let (gets, found) = (hits.gets.load(Relaxed), hits.found.load(Relaxed));
        if found < gets {
            let share = found as f64 / gets as f64;
            let note = format!("{work}: {share:.5} of the gets of {} were hits", entrant.name);
            assert!(entrant.drops || share > 0.999, "{note}");
            self.notes.push(note);
        }
    }

    /// Prints the results by workload and system, followed by the notes.
    pub fn print(&self) {
        println!("| work | system | ns | min | GB/s | x nuthatch |\n|---|---|---|---|---|---|");
        let mut works: Vec<&str> = Vec::new();
        for (work, ..) in &self.rows {
            if !works.contains(&work.as_str()) {
                works.push(work);
            }
        }
        for work in works {
            let rows = self.rows.iter().filter(|(found, ..)| found == work);
            let own = rows.clone().find(|(_, system, ..)| *system == "nuthatch");
            for (_, system, bytes, figure) in rows {
                let speed = *bytes as f64 / figure.median;
                let speed = if *bytes == 0 { String::new() } else { format!("{speed:.2}") };
                let times = own.map_or(f64::NAN, |(.., own)| figure.median / own.median);
                println!(
                    "| {work} | {system} | {:.0} | {:.0} | {speed} | {times:.2} |",
                    figure.median, figure.min
                );
            }
        }
        self.notes.iter().for_each(|note| println!("\n{note}"));
    }
}
