//! Rates between two samples, or since the server started.

use super::cluster::ClusterNode;
use super::disk::Disk;
use super::exposition::Histogram;
use super::sample::{Command, Sample};

/// The rates of a server over an interval, per second.
#[derive(Debug)]
pub(crate) struct View {
    /// The later sample.
    pub(super) now: Sample,
    /// The length of the interval in seconds.
    pub(super) interval_s: f64,
    /// Set if the interval begins with the start of the server.
    pub(super) is_since_start: bool,
    pub(super) requests: f64,
    pub(super) errors: f64,
    /// Commands, the most frequent first.
    pub(super) commands: Vec<CommandView>,
    pub(super) hits: f64,
    /// By cause.
    pub(super) misses: Vec<(String, f64)>,
    pub(super) stored: f64,
    pub(super) removed: f64,
    pub(super) expired: f64,
    pub(super) evicted: f64,
    pub(super) slow: f64,
    pub(super) accepted: f64,
    pub(super) refused: f64,
    pub(super) output_limits: f64,
    pub(super) received: f64,
    pub(super) sent: f64,
    /// The duration of event-loop iterations of all threads.
    pub(super) event_loop_lag: Histogram,
    /// The busy share of each thread.
    pub(super) busy: Vec<(String, f64)>,
    /// The number of processors that the process uses.
    pub(super) cpu: f64,
    /// The disk tier, with rates; `None` without one.
    pub(super) disk: Option<Disk>,
    /// The node of a cluster, with rates; `None` without one.
    pub(super) cluster: Option<ClusterNode>,
}

/// The rates of a command over an interval.
#[derive(Debug)]
pub(crate) struct CommandView {
    pub(super) name: String,
    /// Since the server started.
    pub(super) calls: f64,
    pub(super) rate: f64,
    pub(super) errors: f64,
    pub(super) times: Histogram,
}

/// The percentiles that are shown.
pub(super) const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

impl View {
    /// Computes the rates of `now` since `earlier`, or since the server started.
    pub(crate) fn new(now: Sample, earlier: Option<&Sample>) -> Self {
        // After a restart, the counters begin at zero.
        let earlier = earlier.filter(|earlier| earlier.uptime_s < now.uptime_s);
        let nothing = Sample::default();
        let (is_since_start, earlier) = (earlier.is_none(), earlier.unwrap_or(&nothing));
        let interval_s = now.uptime_s - earlier.uptime_s;
        let rate = |of: fn(&Sample) -> f64| per(of(&now) - of(earlier), interval_s);
        let mut event_loop_lag = Histogram::default();
        let mut busy = Vec::new();
        for (thread, times) in &now.event_loop_lag {
            let times =
                earlier.event_loop_lag.get(thread).map_or(times.clone(), |e| times.since(e));
            busy.push((thread.clone(), per(times.sum, interval_s)));
            event_loop_lag.add(&times);
        }
        busy.sort_by_key(|(thread, _)| thread.parse::<u64>().unwrap_or(u64::MAX));
        let commands = commands(&now, earlier, interval_s);
        let before = |cause: &str| {
            earlier.misses.iter().find(|miss| miss.0 == cause).map_or(0.0, |miss| miss.1)
        };
        let misses = now.misses.iter();
        let misses = misses.map(|(cause, n)| (cause.clone(), per(n - before(cause), interval_s)));
        Self {
            interval_s,
            is_since_start,
            requests: commands.iter().map(|command| command.rate).sum(),
            errors: commands.iter().map(|command| command.errors).sum(),
            hits: rate(|sample| sample.hits),
            misses: misses.collect(),
            stored: rate(|sample| sample.stored),
            removed: rate(|sample| sample.removed),
            expired: rate(|sample| sample.expired),
            evicted: rate(|sample| sample.evicted),
            slow: rate(|sample| sample.slow),
            accepted: rate(|sample| sample.accepted),
            refused: rate(|sample| sample.refused),
            output_limits: rate(|sample| sample.output_limits),
            received: rate(|sample| sample.received),
            sent: rate(|sample| sample.sent),
            cpu: rate(|sample| sample.cpu_s),
            disk: now.disk.map(|disk| disk.since(earlier.disk, interval_s)),
            cluster: now.cluster.map(|node| node.since(earlier.cluster, interval_s)),
            commands,
            event_loop_lag,
            busy,
            now,
        }
    }

    /// Returns the rates from the current sample to a later one.
    pub(crate) fn until(&self, later: Sample) -> Self {
        Self::new(later, Some(&self.now))
    }

    /// Returns the share of lookups that hit. `None` without lookups.
    pub(super) fn hit_ratio(&self) -> Option<f64> {
        let lookups = self.hits + self.misses.iter().map(|miss| miss.1).sum::<f64>();
        (lookups > 0.0).then(|| self.hits / lookups)
    }

    /// Returns the memory in use in bytes.
    pub(super) fn memory(&self) -> f64 {
        self.now.memory.iter().map(|kind| kind.1).sum()
    }
}

fn commands(now: &Sample, earlier: &Sample, interval_s: f64) -> Vec<CommandView> {
    let nothing = Command::default();
    let commands = now.commands.iter().map(|(name, command)| {
        let before = earlier.commands.get(name).unwrap_or(&nothing);
        CommandView {
            name: name.clone(),
            calls: command.calls,
            rate: per(command.calls - before.calls, interval_s),
            errors: per(command.errors - before.errors, interval_s),
            times: command.times.since(&before.times),
        }
    });
    let mut commands: Vec<_> = commands.collect();
    commands.sort_by(|one, other| {
        other.rate.total_cmp(&one.rate).then(other.calls.total_cmp(&one.calls))
    });
    commands
}

/// Returns the rate for a count in a number of seconds.
fn per(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { (count / seconds).max(0.0) } else { 0.0 }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the sample of a server with this uptime and number of gets.
    pub(in crate::commands::top) fn sample(uptime_s: u32, gets: u32) -> Sample {
        let half = gets / 2;
        let text = format!(
            "nuthatch_build_info{{version=\"1.2.3\"}} 1\nnuthatch_uptime_seconds {uptime_s}\n\
             nuthatch_commands_total{{command=\"get\"}} {gets}\n\
             nuthatch_commands_total{{command=\"set\"}} 7\n\
             nuthatch_commands_failed_total{{command=\"get\"}} 0\n\
             nuthatch_commands_rejected_total{{command=\"get\"}} {half}\n\
             nuthatch_command_duration_seconds_bucket{{command=\"get\",le=\"0.000001\"}} {half}\n\
             nuthatch_command_duration_seconds_bucket{{command=\"get\",le=\"+Inf\"}} {gets}\n\
             nuthatch_command_duration_seconds_sum{{command=\"get\"}} 1\n\
             nuthatch_hits_total {half}\nnuthatch_misses_total{{cause=\"absent\"}} {half}\n\
             nuthatch_memory_bytes{{kind=\"items\"}} 1048576\n\
             nuthatch_memory_bytes{{kind=\"index\"}} 524288\n\
             nuthatch_memory_limit_bytes 4194304\nnuthatch_connections 3\n\
             nuthatch_received_bytes_total {gets}\n\
             nuthatch_event_loop_lag_seconds_bucket{{thread=\"0\",le=\"0.001\"}} {gets}\n\
             nuthatch_event_loop_lag_seconds_bucket{{thread=\"0\",le=\"+Inf\"}} {gets}\n\
             nuthatch_event_loop_lag_seconds_sum{{thread=\"0\"}} {uptime_s}\n"
        );
        Sample::parse(&text).expect("a sample")
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn rates_are_between_samples_or_since_the_start() {
        let view = View::new(sample(20, 3000), Some(&sample(10, 1000)));
        assert!(!view.is_since_start);
        close(view.interval_s, 10.0);
        close(view.requests, 200.0);
        close(view.errors, 100.0);
        close(view.hit_ratio().expect("lookups"), 0.5);
        close(view.busy[0].1, 1.0);
        close(view.event_loop_lag.count(), 2000.0);
        assert_eq!(view.commands[0].name, "get");
        close(view.commands[0].times.count(), 2000.0);
        let view = View::new(sample(20, 3000), None);
        assert!(view.is_since_start);
        close(view.requests, 3007.0 / 20.0);
        close(view.memory(), 1_572_864.0);
    }

    #[test]
    fn after_a_restart_rates_begin_with_the_start() {
        let view = View::new(sample(5, 100), Some(&sample(1000, 50)));
        assert!(view.is_since_start);
        close(view.commands[0].rate, 20.0);
    }

    #[test]
    fn without_lookups_there_is_no_hit_ratio() {
        let view = View::new(sample(0, 0), Some(&sample(0, 0)));
        assert_eq!(view.hit_ratio(), None);
        close(view.requests, 0.0);
    }

    #[test]
    fn metrics_of_other_servers_are_an_error() {
        let problem = Sample::parse("node_cpu_seconds_total 1\n").expect_err("another server");
        assert!(problem.contains("expected nuthatch_uptime_seconds"), "{problem}");
    }
}
