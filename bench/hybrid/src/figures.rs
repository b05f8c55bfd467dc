//! The figures of a system, and their way from the process that measures to its parent.

use nuthatch_bench::Result;
use std::fmt::{Display, Write};

/// How the figures of all rounds become one.
#[derive(Clone, Copy)]
pub(crate) enum Summary {
    Median,
    Last,
    Max,
}

/// A figure: its name in JSON, the two lines above its column, its divisor and its decimals in a
/// table, and its summary.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) heading: [&'static str; 2],
    pub(crate) divisor: f64,
    pub(crate) decimals: usize,
    pub(crate) summary: Summary,
}

const MIB: f64 = (1 << 20) as f64;

const fn figure(
    name: &'static str,
    heading: [&'static str; 2],
    divisor: f64,
    decimals: usize,
    summary: Summary,
) -> Figure {
    Figure { name, heading, divisor, decimals, summary }
}

/// The figures of a round, in the order of the columns.
pub(crate) const OF_ROUND: [Figure; 11] = [
    figure("gets_per_second", ["", "gets/s"], 1.0, 0, Summary::Median),
    figure("hit_ratio", ["hits", "%"], 0.01, 2, Summary::Median),
    figure("p50_us", ["p50", "us"], 1.0, 1, Summary::Median),
    figure("p99_us", ["p99", "us"], 1.0, 0, Summary::Median),
    figure("p999_us", ["p99.9", "us"], 1.0, 0, Summary::Median),
    figure("peak_rss_bytes", ["peak RSS", "MiB"], MIB, 0, Summary::Max),
    figure("end_rss_bytes", ["end RSS", "MiB"], MIB, 0, Summary::Last),
    figure("cpu_us_per_get", ["CPU/get", "us"], 1.0, 1, Summary::Median),
    figure("read_bytes_per_get", ["read/get", "bytes"], 1.0, 0, Summary::Median),
    figure("written_bytes_per_get", ["written/get", "bytes"], 1.0, 0, Summary::Median),
    figure("disk_bytes", ["disk", "MiB"], MIB, 0, Summary::Last),
];

/// The figures of the time before the first round.
pub(crate) const OF_START: [Figure; 4] = [
    figure("fill_seconds", ["fill", "s"], 1.0, 1, Summary::Last),
    figure("fill_written_bytes", ["fill written", "MiB"], MIB, 0, Summary::Last),
    figure("draw_cpu_us", ["CPU/draw", "us"], 1.0, 1, Summary::Last),
    figure("base_rss_bytes", ["base RSS", "MiB"], MIB, 0, Summary::Last),
];

/// The values of figures, in their order.
pub(crate) type Values<const N: usize> = [f64; N];

/// Returns a line with these values.
pub(crate) fn line(values: &[f64]) -> String {
    let texts: Vec<_> = values.iter().map(f64::to_string).collect();
    texts.join(" ")
}

/// Parses a line with values.
pub(crate) fn parse<const N: usize>(line: &str) -> Result<Values<N>> {
    let words = line.split_whitespace().map(str::parse);
    let values = words.collect::<std::result::Result<Vec<f64>, _>>()?;
    values.try_into().map_err(|_| format!("expected {N} numbers, not {line:?}").into())
}

/// Returns one value for each figure of the rounds, of which there is at least one.
pub(crate) fn summarize(rounds: &[Values<11>]) -> Values<11> {
    std::array::from_fn(|at| {
        let mut all: Vec<_> = rounds.iter().map(|round| round[at]).collect();
        let last = all[all.len() - 1];
        all.sort_by(f64::total_cmp);
        match OF_ROUND[at].summary {
            Summary::Median => f64::midpoint(all[(all.len() - 1) / 2], all[all.len() / 2]),
            Summary::Last => last,
            Summary::Max => all[all.len() - 1],
        }
    })
}

/// The figures of a system with values of one size.
pub(crate) struct Row {
    pub(crate) system: String,
    pub(crate) value_len: usize,
    pub(crate) keys: u32,
    pub(crate) of_start: Values<4>,
    pub(crate) of_rounds: Values<11>,
}

impl Row {
    fn columns(&self) -> impl Iterator<Item = (&'static Figure, f64)> {
        let rounds = OF_ROUND.iter().zip(self.of_rounds);
        rounds.chain(OF_START.iter().zip(self.of_start))
    }
}

/// Returns a table of these rows, which have the same size of values, in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut add = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    let figures = || OF_ROUND.iter().chain(&OF_START);
    let heading = |figure: &Figure| figure.heading.join(" ").trim().to_owned();
    add(std::iter::once("system".to_owned()).chain(figures().map(heading)).collect());
    let rules = figures().map(|_| "--:".to_owned());
    add(std::iter::once("---".to_owned()).chain(rules).collect());
    for row in rows {
        let cell = |(figure, value): (&Figure, f64)| match figure.decimals {
            0 => grouped(value / figure.divisor),
            decimals => format!("{:.decimals$}", value / figure.divisor),
        };
        add(std::iter::once(row.system.clone()).chain(row.columns().map(cell)).collect());
    }
    text
}

/// Formats a rounded number with groups of three digits.
#[allow(clippy::cast_sign_loss, reason = "the number is not negative")]
fn grouped(number: f64) -> String {
    nuthatch_units::grouped(number.round().max(0.0) as u64)
}

/// Returns these rows as an array in JSON.
pub(crate) fn json(rows: &[Row], rounds: usize) -> String {
    let objects: Vec<_> = rows
        .iter()
        .map(|row| {
            let Row { system, value_len, keys, .. } = row;
            let mut text = format!(
                "{{\"system\":\"{system}\",\"value_bytes\":{value_len},\"keys\":{keys},\
                 \"rounds\":{rounds}"
            );
            for (figure, value) in row.columns() {
                add_field(&mut text, figure.name, value);
            }
            text + "}"
        })
        .collect();
    format!("[{}]", objects.join(",\n "))
}

fn add_field(text: &mut String, name: &str, value: impl Display) {
    let _ = write!(text, ",\"{name}\":{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let (mut first, mut second, mut third) = ([1.0; 11], [2.0; 11], [9.0; 11]);
        (first[5], second[5], third[5]) = (5e6, 7e6, 6e6);
        let of_rounds = summarize(&[third, first, second]);
        Row { system: "own".into(), value_len: 8, keys: 3, of_start: [0.5; 4], of_rounds }
    }

    #[test]
    fn each_figure_has_its_summary() {
        let row = row();
        assert!(row.of_rounds[..5].iter().all(|value| value.to_bits() == 2.0_f64.to_bits()));
        let [peak, end] = [row.of_rounds[5], row.of_rounds[6]];
        assert_eq!([peak, end].map(f64::to_bits), [7e6, 2.0].map(f64::to_bits));
        let even = summarize(&[[1.0; 11], [4.0; 11]]);
        assert_eq!(even[0].to_bits(), 2.5_f64.to_bits());
    }

    #[test]
    fn values_round_trip_as_lines() {
        let values = [0.1, 2e9, 0.0];
        let parsed = parse::<3>(&line(&values)).expect("three values");
        assert_eq!(parsed.map(f64::to_bits), values.map(f64::to_bits));
        assert!(parse::<3>("1 2").is_err() && parse::<1>("one").is_err());
    }

    #[test]
    fn tables_and_json_have_all_figures() {
        let table = table(&[row()]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.matches('|').count() == 17), "{table}");
        assert!(lines[2].starts_with("| own | 2 | 200.00 | 2.0 | 2 | 2 | 7 |"), "{table}");
        let json = json(&[row()], 3);
        assert!(json.contains("\"peak_rss_bytes\":7000000,\"end_rss_bytes\":2,"), "{json}");
        assert!(json.starts_with("[{\"system\":\"own\",") && json.ends_with("}]"), "{json}");
    }
}
