//! Results as a table and as rows in JSON.

use crate::work::Work;
use std::io::{Result, Write};

/// One result of one system.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) work: Work,
    pub(crate) system: &'static str,
    pub(crate) keys: u32,
    pub(crate) rounds: usize,
    /// The result, in the unit of the workload.
    pub(crate) value: f64,
    pub(crate) times_hash_map: Option<f64>,
    pub(crate) times_own_hit: Option<f64>,
}

/// Writes results as a JSON array.
pub(crate) fn json(figures: &[Figure], out: &mut dyn Write) -> Result<()> {
    for (at, figure) in figures.iter().enumerate() {
        let before = if at == 0 { "[" } else { "," };
        let Figure { work, system, keys, rounds, value, .. } = figure;
        let (name, field) = (work.name(), work.field());
        write!(out, "{before}\n  {{\"work\":\"{name}\",\"system\":\"{system}\",\"keys\":{keys},")?;
        let decimals = if *work == Work::Resident { 0 } else { 2 };
        write!(out, "\"{field}\":{value:.decimals$},\"rounds\":{rounds}")?;
        if let Some(times) = figure.times_hash_map {
            write!(out, ",\"times_hashbrown\":{times:.3}")?;
        }
        if let Some(times) = figure.times_own_hit {
            write!(out, ",\"times_own_hit\":{times:.3}")?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"\n]\n")
}

/// Writes the heading of a table before its workloads run.
pub(crate) fn heading(what: &str, keys: u32, rounds: usize, out: &mut dyn Write) -> Result<()> {
    let keys = grouped(keys);
    writeln!(out, "{keys} {what}, medians of {rounds} rounds\n")?;
    let (work, system) = ("work", "system");
    writeln!(out, "{work:<18}{system:<15}{:>12} {:<17}x hashbrown  x own hit", "median", "")?;
    out.flush()
}

/// Writes results as a table.
pub(crate) fn table(figures: &[Figure], out: &mut dyn Write) -> Result<()> {
    let mut last = None;
    for figure in figures {
        let work = if last == Some(figure.work) { "" } else { figure.work.name() };
        last = Some(figure.work);
        let (value, unit) = readable(figure);
        let times = |times: Option<f64>| times.map_or(String::new(), |times| format!("{times:.2}"));
        let row = format!(
            "{work:<18}{:<15}{value:>12.1} {unit:<17}{:>11}{:>11}",
            figure.system,
            times(figure.times_hash_map),
            times(figure.times_own_hit),
        );
        writeln!(out, "{}", row.trim_end())?;
    }
    writeln!(out)?;
    out.flush()
}

fn readable(figure: &Figure) -> (f64, &'static str) {
    match figure.work {
        Work::Build => (figure.value, "ns an entry"),
        Work::Open => (figure.value / 1e3, "us"),
        Work::FileOverhead => (figure.value, "bytes an entry"),
        Work::Resident => (figure.value / f64::from(1 << 20), "MiB"),
        _ => (figure.value, "ns a lookup"),
    }
}

/// Returns a number with commas between thousands.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURE: Figure = Figure {
        work: Work::GetMiss,
        system: "nuthatch",
        keys: 1_000_000,
        rounds: 5,
        value: 61.04,
        times_hash_map: Some(0.5),
        times_own_hit: None,
    };

    fn written(write: impl FnOnce(&mut dyn Write) -> Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).expect("memory takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn rows_are_json() {
        let text = written(|out| json(&[FIGURE, Figure { times_hash_map: None, ..FIGURE }], out));
        let row = "{\"work\":\"get_miss\",\"system\":\"nuthatch\",\"keys\":1000000,\
                   \"ns_per_op\":61.04,\"rounds\":5";
        assert_eq!(text, format!("[\n  {row},\"times_hashbrown\":0.500}},\n  {row}}}\n]\n"));
    }

    #[test]
    fn a_table_names_each_work_once() {
        let text = written(|out| table(&[FIGURE, Figure { system: "hashbrown", ..FIGURE }], out));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("get_miss          nuthatch"), "{text}");
        assert!(lines[0].ends_with("61.0 ns a lookup             0.50"), "{text}");
        assert!(lines[1].starts_with("                  hashbrown"), "{text}");
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(20_000_000), "20,000,000");
    }
}
