//! Results of ordered stores, as a table and as rows in JSON.

use super::figures::StoreFigure;
use super::rows::StoreOptions;
use std::io::{Result, Write};

pub(super) fn table(
    options: &StoreOptions,
    figures: &[StoreFigure],
    out: &mut dyn Write,
) -> Result<()> {
    let StoreOptions { rows, key_len, value_len, rounds, .. } = options;
    writeln!(out, "{rows} rows of {key_len} and {value_len} bytes, medians of {rounds} rounds\n")?;
    let (work, system, rate) = ("work", "system", "a second");
    writeln!(out, "{work:<18}{system:<12}{rate:>14}  {:<24}{:>12}", "times the rate of", "p99 us")?;
    let mut last = "";
    for figure in figures {
        let work = if last == figure.work { "" } else { figure.work };
        last = figure.work;
        let against =
            figure.against.map_or(String::new(), |(what, times)| format!("{times:>6.2} {what}"));
        let p99 = figure.p99_us.map_or(String::new(), |p99| format!("{p99:.0}"));
        let StoreFigure { system, per_second, .. } = figure;
        let row = format!("{work:<18}{system:<12}{per_second:>14.0}  {against:<24}{p99:>12}");
        writeln!(out, "{}", row.trim_end())?;
    }
    Ok(())
}

pub(super) fn json(figures: &[StoreFigure], out: &mut dyn Write) -> Result<()> {
    for (at, figure) in figures.iter().enumerate() {
        let before = if at == 0 { "[" } else { "," };
        let StoreFigure { work, system, per_second, against, p99_us } = figure;
        write!(out, "{before}\n  {{\"work\":\"{work}\",\"system\":\"{system}\",")?;
        write!(out, "\"per_second\":{per_second:.1}")?;
        if let Some((what, times)) = against {
            write!(out, ",\"against\":\"{what}\",\"times\":{times:.3}")?;
        }
        if let Some(p99) = p99_us {
            write!(out, ",\"p99_us\":{p99:.1}")?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"\n]\n")
}
