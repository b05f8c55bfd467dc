//! The results of a benchmark: medians, as a table and as rows in JSON.

use crate::race::disk::Counters;
use crate::race::systems::System;
use crate::report::{LimitedBy, Report};
use std::io::{Result, Write};

/// The result of one system in one workload.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) work: &'static str,
    pub(crate) system: System,
    /// The workload of Redis to which this result is compared.
    pub(crate) reference: &'static str,
    pub(crate) ops_per_second: f64,
    pub(crate) user_ns: f64,
    pub(crate) system_ns: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) server_share: f64,
    pub(crate) generator_share: f64,
    pub(crate) hit_share: Option<f64>,
    pub(crate) limited_by: LimitedBy,
    /// Counters of all rounds, if the system has a disk.
    pub(crate) disk: Option<Counters>,
}

impl Figure {
    /// Returns the median of each value over the rounds, of which there must be at least one.
    pub(crate) fn of(
        (work, reference): (&'static str, &'static str),
        system: System,
        rounds: &[Report],
    ) -> Self {
        let median = |figure: &dyn Fn(&Report) -> f64| middle(rounds.iter().map(figure).collect());
        let server = |report: &Report| report.server.unwrap_or_default();
        let limited = rounds.iter().filter(|r| r.limited_by() == LimitedBy::Generator).count();
        let found = rounds.iter().filter_map(|report| report.found);
        let hits = found.clone().map(|found| found.hits).sum::<u64>() as f64;
        let lookups = found.map(|found| found.hits + found.misses).sum::<u64>();
        Self {
            work,
            system,
            reference,
            ops_per_second: median(&|report| report.ops_per_second),
            user_ns: median(&|report| server(report).user_ns),
            system_ns: median(&|report| server(report).system_ns),
            p99_us: median(&|report| report.latency.p99_us),
            p999_us: median(&|report| report.latency.p999_us),
            server_share: median(&|report| server(report).share_at(report.ops_per_second)),
            generator_share: median(&|report| report.generator_share),
            hit_share: (lookups > 0).then(|| hits / lookups as f64),
            limited_by: if 2 * limited > rounds.len() {
                LimitedBy::Generator
            } else {
                LimitedBy::Server
            },
            disk: None,
        }
    }

    fn hits_per_second(&self) -> f64 {
        self.ops_per_second * self.hit_share.unwrap_or_default()
    }

    /// Returns this rate divided by the rate of Redis, or `None` if Redis was not measured.
    fn times_redis(&self, all: &[Self]) -> Option<f64> {
        let is_it = |other: &&Self| other.system == System::Redis && other.work == self.reference;
        all.iter().find(is_it).map(|redis| self.ops_per_second / redis.ops_per_second)
    }
}

impl Counters {
    /// Returns the share of lookups whose item was on disk.
    fn disk_share(self) -> f64 {
        self.disk_hits as f64 / self.lookups.max(1) as f64
    }

    fn reads_per_hit(self) -> f64 {
        self.disk_reads as f64 / self.disk_hits.max(1) as f64
    }

    /// Returns the bytes read from the device for each read. If this is less than the length of a
    /// value, reads were served by the page cache.
    fn bytes_per_read(self) -> f64 {
        self.device_bytes as f64 / self.disk_reads.max(1) as f64
    }
}

fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    let count = figures.len();
    f64::midpoint(figures[(count - 1) / 2], figures[count / 2])
}

/// Writes results as a JSON array.
pub(crate) fn json(figures: &[Figure], out: &mut dyn Write) -> Result<()> {
    for (at, figure) in figures.iter().enumerate() {
        let before = if at == 0 { "[" } else { "," };
        let Figure { work, system, ops_per_second, user_ns, system_ns, p99_us, .. } = figure;
        write!(out, "{before}\n  {{\"work\":\"{work}\",\"system\":\"{system}\",")?;
        write!(out, "\"ops_per_second\":{ops_per_second:.0}")?;
        if let Some(times) = figure.times_redis(figures) {
            write!(out, ",\"ratio_to_redis\":{times:.3}")?;
        }
        write!(out, ",\"user_ns_per_op\":{user_ns:.0},\"system_ns_per_op\":{system_ns:.0}")?;
        write!(out, ",\"p99_us\":{p99_us:.1}")?;
        if let Some(share) = figure.hit_share {
            write!(out, ",\"hit_share\":{share:.4}")?;
        }
        if let Some(disk) = figure.disk {
            write!(out, ",\"p999_us\":{:.1}", figure.p999_us)?;
            write!(out, ",\"hits_per_second\":{:.0}", figure.hits_per_second())?;
            write!(out, ",\"disk_share\":{:.4}", disk.disk_share())?;
            write!(out, ",\"reads_per_disk_hit\":{:.3}", disk.reads_per_hit())?;
            write!(out, ",\"device_bytes_per_read\":{:.0}", disk.bytes_per_read())?;
        }
        let Figure { server_share, generator_share, limited_by, .. } = figure;
        write!(out, ",\"server_share\":{server_share:.3}")?;
        write!(out, ",\"generator_share\":{generator_share:.3}")?;
        write!(out, ",\"limited_by\":\"{limited_by}\"}}")?;
    }
    out.write_all(b"\n]\n")
}

/// Writes results as a table.
pub(crate) fn table(figures: &[Figure], out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "{:<13}{:<15}{:>10} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>10}",
        "work",
        "system",
        "M ops/s",
        "x redis",
        "user ns",
        "sys ns",
        "p99 us",
        "hits",
        "server",
        "generator"
    )?;
    let mut last = None;
    for figure in figures {
        let work = if last == Some(figure.work) { "" } else { figure.work };
        last = Some(figure.work);
        let times = figure.times_redis(figures).map_or(String::new(), |t| format!("{t:.2}"));
        let hits = figure.hit_share.map_or(String::new(), |share| format!("{:.1}%", 100.0 * share));
        let limit = if figure.limited_by == LimitedBy::Generator { " <" } else { "" };
        let Figure { user_ns, system_ns, p99_us, .. } = figure;
        let (server, generator) = (100.0 * figure.server_share, 100.0 * figure.generator_share);
        let rate = figure.ops_per_second / 1e6;
        writeln!(
            out,
            "{work:<13}{:<15}{rate:>10.3} {times:>9} {user_ns:>9.0} {system_ns:>9.0} \
             {p99_us:>9.0} {hits:>7} {server:>6.0}% {generator:>9.0}%{limit}",
            figure.system.to_string(),
        )?;
    }
    if figures.iter().any(|figure| figure.limited_by == LimitedBy::Generator) {
        writeln!(out, "\n< the generator was too busy: the system can do more")?;
    }
    if figures.iter().any(|figure| figure.disk.is_some()) {
        disk_table(figures, out)?;
    }
    out.flush()
}

/// Writes a table of the systems with a disk.
fn disk_table(figures: &[Figure], out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "\n{:<13}{:<15}{:>12} {:>9} {:>9} {:>10} {:>10} {:>9} {:>9}",
        "work",
        "system",
        "k requests/s",
        "k hits/s",
        "from disk",
        "reads/hit",
        "bytes/read",
        "p99 us",
        "p99.9 us"
    )?;
    for (figure, disk) in figures.iter().filter_map(|figure| Some((figure, figure.disk?))) {
        writeln!(
            out,
            "{:<13}{:<15}{:>12.1} {:>9.1} {:>8.1}% {:>10.3} {:>10.0} {:>9.0} {:>9.0}",
            figure.work,
            figure.system.to_string(),
            figure.ops_per_second / 1e3,
            figure.hits_per_second() / 1e3,
            100.0 * disk.disk_share(),
            disk.reads_per_hit(),
            disk.bytes_per_read(),
            figure.p99_us,
            figure.p999_us,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Found, Latency, TimePerOp};
    use std::time::Duration;

    fn report(ops_per_second: f64, generator_share: f64) -> Report {
        Report {
            requests: 1000,
            elapsed: Duration::from_secs(1),
            ops_per_second,
            found: Some(Found { hits: 999, misses: 1 }),
            latency: Latency { p99_us: 1e6 / ops_per_second, ..Latency::default() },
            generator_share,
            generator: TimePerOp::default(),
            server: Some(TimePerOp { user_ns: 300.0, system_ns: 200.0 }),
            server_resident_bytes: None,
        }
    }

    fn figures() -> Vec<Figure> {
        let names = ("get100", "get100");
        let redis = [report(1e6, 0.2), report(3e6, 0.2), report(2e6, 0.2)];
        let echo = [report(9e6, 0.95), report(8e6, 0.96), report(7e6, 0.89)];
        let text = [report(5e5, 0.1)];
        vec![
            Figure::of(names, System::Redis, &redis),
            Figure::of(names, System::Echo, &echo),
            Figure::of(("get100-text", "get100"), System::Memcached, &text),
        ]
    }

    fn written(write: fn(&[Figure], &mut dyn Write) -> Result<()>) -> String {
        let mut out = Vec::new();
        write(&figures(), &mut out).expect("memory takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn rows_are_json() {
        let rows = written(json);
        let lines: Vec<&str> = rows.lines().collect();
        assert_eq!((lines[0], lines[4], lines.len()), ("[", "]", 5));
        let redis = "  {\"work\":\"get100\",\"system\":\"redis\",\"ops_per_second\":2000000,\
                     \"ratio_to_redis\":1.000,\"user_ns_per_op\":300,\"system_ns_per_op\":200,\
                     \"p99_us\":0.5,\"hit_share\":0.9990,\"server_share\":1.000,\
                     \"generator_share\":0.200,\"limited_by\":\"server\"}";
        assert_eq!(lines[1], format!("{redis},"));
        assert!(lines[2].contains("\"ratio_to_redis\":4.000"), "{rows}");
        assert!(lines[2].contains("\"limited_by\":\"generator\""), "two of three rounds are");
        assert!(lines[3].contains("\"ratio_to_redis\":0.250"), "of redis at get100: {rows}");
    }

    #[test]
    fn a_table_names_each_work_once() {
        let table = written(table);
        let lines: Vec<&str> = table.lines().collect();
        let starts: Vec<&str> = lines[1..4].iter().map(|line| line[..13].trim_end()).collect();
        assert_eq!(starts, ["get100", "", "get100-text"]);
        assert!(lines[2].ends_with("95% <"), "{table}");
        assert!(lines[5].starts_with("< the generator"), "{table}");
    }

    #[test]
    fn without_redis_there_is_no_ratio() {
        let figures = &figures()[1..];
        assert_eq!(figures[0].times_redis(figures), None);
    }
}
