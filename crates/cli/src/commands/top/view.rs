//! What happened between two samples, or since the server started.

use super::exposition::Times;
use super::sample::{Command, Sample};

/// A server over some time. Rates are per second.
#[derive(Debug)]
pub(crate) struct View {
    /// What is as it was when the later sample was taken.
    pub(super) now: Sample,
    /// The time it is about, in seconds.
    pub(super) over_s: f64,
    /// Whether that is all the time since the server started.
    pub(super) whole: bool,
    pub(super) requests: f64,
    pub(super) errors: f64,
    /// Those that were called most come first.
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
    /// Turns of all threads.
    pub(super) turns: Times,
    /// The part of its time that each thread was busy.
    pub(super) busy: Vec<(String, f64)>,
    /// Processors in use, by the whole process.
    pub(super) cpu: f64,
}

/// A command over some time.
#[derive(Debug)]
pub(crate) struct CommandView {
    pub(super) name: String,
    /// Since the server started.
    pub(super) calls: f64,
    pub(super) rate: f64,
    pub(super) errors: f64,
    pub(super) times: Times,
}

/// The percentiles that are shown.
pub(super) const PARTS: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

impl View {
    /// What is in `now`, since `earlier` or else since the server started.
    pub(crate) fn new(now: Sample, earlier: Option<&Sample>) -> Self {
        // One that started anew has not counted what the earlier one had.
        let earlier = earlier.filter(|earlier| earlier.uptime_s < now.uptime_s);
        let nothing = Sample::default();
        let (whole, earlier) = (earlier.is_none(), earlier.unwrap_or(&nothing));
        let over_s = now.uptime_s - earlier.uptime_s;
        let rate = |of: fn(&Sample) -> f64| per(of(&now) - of(earlier), over_s);
        let mut turns = Times::default();
        let mut busy = Vec::new();
        for (thread, times) in &now.turns {
            let times = earlier.turns.get(thread).map_or(times.clone(), |e| times.since(e));
            busy.push((thread.clone(), per(times.sum, over_s)));
            turns.add(&times);
        }
        busy.sort_by_key(|(thread, _)| thread.parse::<u64>().unwrap_or(u64::MAX));
        let commands = commands(&now, earlier, over_s);
        let before = |cause: &str| {
            earlier.misses.iter().find(|miss| miss.0 == cause).map_or(0.0, |miss| miss.1)
        };
        let misses = now.misses.iter();
        let misses = misses.map(|(cause, n)| (cause.clone(), per(n - before(cause), over_s)));
        Self {
            over_s,
            whole,
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
            commands,
            turns,
            busy,
            now,
        }
    }

    /// What happened since, until a later sample.
    pub(crate) fn until(&self, later: Sample) -> Self {
        Self::new(later, Some(&self.now))
    }

    /// The part of lookups that found something; none if there were no lookups.
    pub(super) fn hit_ratio(&self) -> Option<f64> {
        let lookups = self.hits + self.misses.iter().map(|miss| miss.1).sum::<f64>();
        (lookups > 0.0).then(|| self.hits / lookups)
    }

    /// Bytes of memory in use.
    pub(super) fn memory(&self) -> f64 {
        self.now.memory.iter().map(|kind| kind.1).sum()
    }
}

fn commands(now: &Sample, earlier: &Sample, over_s: f64) -> Vec<CommandView> {
    let nothing = Command::default();
    let commands = now.commands.iter().map(|(name, command)| {
        let before = earlier.commands.get(name).unwrap_or(&nothing);
        CommandView {
            name: name.clone(),
            calls: command.calls,
            rate: per(command.calls - before.calls, over_s),
            errors: per(command.errors - before.errors, over_s),
            times: command.times.since(&before.times),
        }
    });
    let mut commands: Vec<_> = commands.collect();
    commands.sort_by(|one, other| {
        other.rate.total_cmp(&one.rate).then(other.calls.total_cmp(&one.calls))
    });
    commands
}

/// So many in so many seconds, for each of them.
fn per(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { (count / seconds).max(0.0) } else { 0.0 }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A server that has been up for so long, with so many gets.
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
        assert!(!view.whole);
        close(view.over_s, 10.0);
        close(view.requests, 200.0);
        close(view.errors, 100.0);
        close(view.hit_ratio().expect("lookups"), 0.5);
        close(view.busy[0].1, 1.0);
        close(view.turns.count(), 2000.0);
        assert_eq!(view.commands[0].name, "get");
        close(view.commands[0].times.count(), 2000.0);
        let view = View::new(sample(20, 3000), None);
        assert!(view.whole);
        close(view.requests, 3007.0 / 20.0);
        close(view.memory(), 1_572_864.0);
    }

    #[test]
    fn a_server_that_started_anew_begins_anew() {
        let view = View::new(sample(5, 100), Some(&sample(1000, 50)));
        assert!(view.whole);
        close(view.commands[0].rate, 20.0);
    }

    #[test]
    fn nothing_at_all_is_shown_without_lookups() {
        let view = View::new(sample(0, 0), Some(&sample(0, 0)));
        assert_eq!(view.hit_ratio(), None);
        close(view.requests, 0.0);
    }

    #[test]
    fn other_servers_are_told_apart() {
        let problem = Sample::parse("node_cpu_seconds_total 1\n").expect_err("another server");
        assert!(problem.contains("expected nuthatch_uptime_seconds"), "{problem}");
    }
}
