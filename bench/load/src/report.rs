//! The report of a run.

use crate::cpu::Usage;
use crate::generator::Tally;
use hdrhistogram::Histogram;
use std::fmt::{self, Display, Write};
use std::time::Duration;

/// The share of its core above which the generator may have limited the result.
const MAX_GENERATOR_SHARE: f64 = 0.9;

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Number of requests answered during the measurement.
    pub requests: u64,
    /// Duration of the measurement.
    pub elapsed: Duration,
    /// Requests answered per second.
    pub ops_per_second: f64,
    /// Hits and misses, if the workload reads.
    pub found: Option<Found>,
    /// Time from sending a batch to its last reply.
    pub latency: Latency,
    /// Share of its core that the generator used; the maximum of several threads.
    pub generator_share: f64,
    /// Processor time of the generator for one request.
    pub generator: TimePerOp,
    /// Processor time of the server for one request, if its process is known.
    pub server: Option<TimePerOp>,
    /// Resident memory of the server in bytes, if its process is known.
    pub server_resident_bytes: Option<u64>,
}

/// Outcomes of lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Number of keys found.
    pub hits: u64,
    /// Number of keys not found.
    pub misses: u64,
}

/// Processor time of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimePerOp {
    /// Time in user mode, in nanoseconds.
    pub user_ns: f64,
    /// Time in kernel mode, in nanoseconds.
    pub system_ns: f64,
}

/// Latency of batches, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The maximum.
    pub max_us: f64,
}

/// The component that limited the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The generator. The server could process more requests.
    Generator,
    /// The server, or the network.
    Server,
}

impl Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Generator { "generator" } else { "server" })
    }
}

impl Report {
    pub(crate) fn of(tallies: &[Tally], reads: bool, server_resident_bytes: Option<u64>) -> Self {
        let requests = tallies.iter().map(|tally| tally.requests).sum();
        let each = tallies.iter();
        let rate = |tally: &Tally| tally.requests as f64 / tally.elapsed.as_secs_f64();
        let share = |tally: &Tally| tally.busy.as_secs_f64() / tally.elapsed.as_secs_f64();
        let usage = |all: Usage, tally: &Tally| all.and(tally.usage);
        let found = Found {
            hits: each.clone().map(|tally| tally.counts.hits).sum(),
            misses: each.clone().map(|tally| tally.counts.misses).sum(),
        };
        let server = each.clone().find_map(|tally| tally.server);
        Self {
            requests,
            elapsed: each.clone().map(|tally| tally.elapsed).max().unwrap_or_default(),
            ops_per_second: each.clone().map(rate).sum(),
            found: reads.then_some(found),
            latency: Latency::of(tallies),
            generator_share: each.clone().map(share).fold(0.0, f64::max),
            generator: TimePerOp::of(each.fold(Usage::default(), usage), requests),
            server: server.map(|usage| TimePerOp::of(usage, requests)),
            server_resident_bytes,
        }
    }

    /// Returns the component that limited the throughput.
    pub fn limited_by(&self) -> LimitedBy {
        if self.generator_share > MAX_GENERATOR_SHARE {
            LimitedBy::Generator
        } else {
            LimitedBy::Server
        }
    }

    /// Returns the report as a JSON object.
    pub fn json(&self) -> String {
        let Latency { p50_us, p99_us, p999_us, max_us } = self.latency;
        let mut text = format!(
            "{{\"ops_per_second\":{:.0},\"requests\":{},\"seconds\":{:.3}",
            self.ops_per_second,
            self.requests,
            self.elapsed.as_secs_f64(),
        );
        let mut add = |name: &str, value: &dyn Display| {
            // Writing to a string cannot fail.
            let _ = write!(text, ",\"{name}\":{value}");
        };
        if let Some(Found { hits, misses }) = self.found {
            add("hits", &hits);
            add("misses", &misses);
        }
        for (name, value) in
            [("p50_us", p50_us), ("p99_us", p99_us), ("p999_us", p999_us), ("max_us", max_us)]
        {
            add(name, &format_args!("{value:.1}"));
        }
        add("generator_share", &format_args!("{:.3}", self.generator_share));
        for (who, time) in [("generator", Some(self.generator)), ("server", self.server)] {
            let Some(TimePerOp { user_ns, system_ns }) = time else { continue };
            add(&format!("{who}_user_ns_per_op"), &format_args!("{user_ns:.0}"));
            add(&format!("{who}_system_ns_per_op"), &format_args!("{system_ns:.0}"));
        }
        if let Some(bytes) = self.server_resident_bytes {
            add("server_resident_bytes", &bytes);
        }
        add("limited_by", &format_args!("\"{}\"", self.limited_by()));
        text + "}"
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, seconds) = (self.ops_per_second, self.elapsed.as_secs_f64());
        writeln!(
            f,
            "{:<12}{:.0} a second, {} in {seconds:.2} s",
            "operations", rate, self.requests
        )?;
        if let Some(Found { hits, misses }) = self.found {
            writeln!(f, "{:<12}{hits}, misses {misses}", "hits")?;
        }
        let Latency { p50_us, p99_us, p999_us, max_us } = self.latency;
        let times = [("p50", p50_us), ("p99", p99_us), ("p99.9", p999_us), ("max", max_us)];
        let times = times.map(|(name, us)| format!("{name} {us:.0} us")).join(", ");
        writeln!(f, "{:<12}{times} for a batch", "latency")?;
        let share = 100.0 * self.generator_share;
        let TimePerOp { user_ns, system_ns } = self.generator;
        write!(f, "{:<12}{share:.0} % of a core, ", "generator")?;
        writeln!(f, "{user_ns:.0} ns user and {system_ns:.0} ns system an operation")?;
        if let Some(TimePerOp { user_ns, system_ns }) = self.server {
            write!(
                f,
                "{:<12}{user_ns:.0} ns user and {system_ns:.0} ns system an operation",
                "server"
            )?;
            if let Some(bytes) = self.server_resident_bytes {
                write!(f, ", {:.1} MiB resident", bytes as f64 / f64::from(1 << 20))?;
            }
            writeln!(f)?;
        }
        writeln!(f, "{:<12}{}", "limited by", self.limited_by())
    }
}

impl TimePerOp {
    /// Returns the share of a core that this many operations per second use.
    pub(crate) fn share_at(self, ops_per_second: f64) -> f64 {
        (self.user_ns + self.system_ns) * ops_per_second / 1e9
    }

    fn of(usage: Usage, requests: u64) -> Self {
        let per_op = |time: Duration| time.as_nanos() as f64 / requests.max(1) as f64;
        Self { user_ns: per_op(usage.user), system_ns: per_op(usage.system) }
    }
}

impl Latency {
    fn of(tallies: &[Tally]) -> Self {
        let mut all: Option<Histogram<u64>> = None;
        for Tally { latencies, .. } in tallies {
            match &mut all {
                // All histograms have the same bounds, so adding one to another cannot fail.
                Some(all) => all.add(latencies).unwrap_or_default(),
                None => all = Some(latencies.clone()),
            }
        }
        let Some(all) = all else { return Self::default() };
        let us = |ns: u64| ns as f64 / 1e3;
        Self {
            p50_us: us(all.value_at_quantile(0.5)),
            p99_us: us(all.value_at_quantile(0.99)),
            p999_us: us(all.value_at_quantile(0.999)),
            max_us: us(all.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replies::Counts;

    fn tally(busy_ms: u64, latencies_us: &[u64]) -> Tally {
        let mut latencies =
            Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds that are right");
        for us in latencies_us {
            latencies.saturating_record(us * 1000);
        }
        let ms = Duration::from_millis;
        Tally {
            elapsed: Duration::from_secs(2),
            requests: 1000,
            counts: Counts { hits: 900, misses: 100, stored: 0 },
            latencies,
            busy: ms(busy_ms),
            usage: Usage { user: ms(100), system: ms(200) },
            server: Some(Usage { user: ms(1500), system: ms(500) }),
        }
    }

    #[test]
    fn results_of_threads_are_combined() {
        let mut second = tally(1000, &[50, 60]);
        second.server = None;
        let report = Report::of(&[tally(200, &[10, 20, 30, 40]), second], true, Some(7 << 20));
        assert_eq!((report.requests, report.elapsed), (2000, Duration::from_secs(2)));
        assert_eq!(report.found, Some(Found { hits: 1800, misses: 200 }));
        let json = "{\"ops_per_second\":1000,\"requests\":2000,\"seconds\":2.000,\
                    \"hits\":1800,\"misses\":200,\"p50_us\":30.0,\"p99_us\":60.0,\
                    \"p999_us\":60.0,\"max_us\":60.0,\"generator_share\":0.500,\
                    \"generator_user_ns_per_op\":100000,\"generator_system_ns_per_op\":200000,\
                    \"server_user_ns_per_op\":750000,\"server_system_ns_per_op\":250000,\
                    \"server_resident_bytes\":7340032,\"limited_by\":\"server\"}";
        let rounded = regardless_of_buckets(&report);
        assert_eq!(rounded.json(), json);
        assert!(report.to_string().contains("7.0 MiB resident"), "{report}");
    }

    /// Rounds the latencies. The histogram has three significant digits, so a slightly higher value
    /// than the recorded one is correct.
    fn regardless_of_buckets(report: &Report) -> Report {
        let Latency { p50_us, p99_us, p999_us, max_us } = report.latency;
        let exact = |us: f64| {
            assert!((us - us.round()).abs() < us / 1000.0, "{us} is off by more than 0.1 %");
            us.round()
        };
        let latency = Latency {
            p50_us: exact(p50_us),
            p99_us: exact(p99_us),
            p999_us: exact(p999_us),
            max_us: exact(max_us),
        };
        Report { latency, ..report.clone() }
    }

    #[test]
    fn a_busy_generator_limits_the_throughput() {
        for (busy_ms, expected) in [
            (0, LimitedBy::Server),
            (1800, LimitedBy::Server),
            (1801, LimitedBy::Generator),
            (2000, LimitedBy::Generator),
        ] {
            let report = Report::of(&[tally(0, &[]), tally(busy_ms, &[])], true, None);
            assert_eq!(report.limited_by(), expected, "{busy_ms} ms of 2 s");
            assert!(report.json().ends_with(&format!("\"limited_by\":\"{expected}\"}}")));
        }
    }

    #[test]
    fn stored_values_are_no_hits() {
        let report = Report::of(&[tally(0, &[])], false, None);
        assert_eq!(report.found, None);
        assert!(!report.json().contains("hits") && !report.to_string().contains("hits"));
    }
}
