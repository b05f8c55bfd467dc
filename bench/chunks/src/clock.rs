//! Times of works, and the table of them.

use crate::systems::Entrant;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The least of some rounds is what the machine can do, the median what it usually does.
#[derive(Clone, Copy)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
}

/// Nanoseconds that something takes.
pub fn nanoseconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64
}

/// One of those who do a work: a round of it, by its number, answers the nanoseconds of one
/// operation.
pub struct Runner<'a> {
    pub name: &'static str,
    round: Box<dyn FnMut(usize) -> f64 + 'a>,
}

impl<'a> Runner<'a> {
    /// A round that times itself.
    pub fn new(name: &'static str, round: impl FnMut(usize) -> f64 + 'a) -> Self {
        Self { name, round: Box::new(round) }
    }

    /// A round of `count` operations, which get their numbers.
    pub fn each(name: &'static str, count: usize, mut work: impl FnMut(usize) + 'a) -> Self {
        Self::new(name, move |round| {
            let numbers = round * count..(round + 1) * count;
            nanoseconds(|| numbers.for_each(&mut work)) / count as f64
        })
    }
}

/// How many gets there were, and how many found what they looked for.
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

/// All figures, by work and system.
#[derive(Default)]
pub struct Sheet {
    rows: Vec<(String, &'static str, usize, Figure)>,
    notes: Vec<String>,
}

impl Sheet {
    /// Has all do a work round by round, one after the other in each round, after one round that
    /// does not count. `bytes` is what one operation moves; zero for none.
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
            let figure = Figure { median: samples[samples.len() / 2], least: samples[0] };
            eprintln!("{work:28} {:10} {:14.1} ns", runner.name, figure.median);
            self.rows.push((work.to_owned(), runner.name, bytes, figure));
        }
    }

    /// Tells if some of the gets that were timed found nothing. More than a few may be only with
    /// those who drop what was put.
    pub fn tell(&mut self, work: &str, entrant: &Entrant, hits: &Hits) {
        let (gets, found) = (hits.gets.load(Relaxed), hits.found.load(Relaxed));
        if found < gets {
            let share = found as f64 / gets as f64;
            let note = format!("{work}: {share:.5} of the gets of {} were hits", entrant.name);
            assert!(entrant.drops || share > 0.999, "{note}");
            self.notes.push(note);
        }
    }

    /// Prints the works one after the other, with all systems that do them, and what is to be said
    /// of them.
    pub fn print(&self) {
        println!("| work | system | ns | least | GB/s | x nuthatch |\n|---|---|---|---|---|---|");
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
                    figure.median, figure.least
                );
            }
        }
        self.notes.iter().for_each(|note| println!("\n{note}"));
    }
}
