//! Times of works, and the table of them.

use std::time::Instant;

/// The least of some rounds is what the machine can do, the median what it usually does.
#[derive(Clone, Copy)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
}

/// Nanoseconds of one of `count` operations, over some rounds after one that is not timed.
pub fn time(rounds: usize, count: usize, mut round: impl FnMut(usize)) -> Figure {
    round(0);
    figure(rounds, |number| {
        let began = Instant::now();
        round(number + 1);
        began.elapsed().as_nanos() as f64 / count as f64
    })
}

/// The median of what rounds answer.
pub fn figure(rounds: usize, mut round: impl FnMut(usize) -> f64) -> Figure {
    let mut samples: Vec<_> = (0..rounds.max(1)).map(&mut round).collect();
    samples.sort_by(f64::total_cmp);
    Figure { median: samples[samples.len() / 2], least: samples[0] }
}

/// All figures, by work and system.
#[derive(Default)]
pub struct Sheet(Vec<(String, &'static str, usize, Figure)>);

impl Sheet {
    /// Notes a figure. `bytes` is what one operation moves; zero for none.
    pub fn note(&mut self, work: &str, system: &'static str, bytes: usize, figure: Figure) {
        eprintln!("{work:28} {system:10} {:14.1} ns", figure.median);
        self.0.push((work.to_owned(), system, bytes, figure));
    }

    /// Prints the works one after the other, with all systems that do them.
    pub fn print(&self) {
        println!("| work | system | ns | least | GB/s | x nuthatch |\n|---|---|---|---|---|---|");
        let mut works: Vec<&str> = Vec::new();
        for (work, ..) in &self.0 {
            if !works.contains(&work.as_str()) {
                works.push(work);
            }
        }
        for work in works {
            let rows = self.0.iter().filter(|(found, ..)| found == work);
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
    }
}
