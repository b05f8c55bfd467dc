//! Metrics and health of followers.

use crate::commands::delivery::now;
use nuthatch_delivery::{Error, Fetched, Follower, Swapped};
use nuthatch_listen::{LiveReport, MetricFamily, MetricsFormat, MetricsSource, MetricsText};
use nuthatch_units::duration;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The state of all followers of a process for its operator. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Status {
    is_stopping: Arc<AtomicBool>,
    folders: Vec<FolderStatus>,
}

/// The state of one follower. Clones share it.
#[derive(Clone)]
pub(super) struct FolderStatus {
    folder: String,
    max_age: Option<Duration>,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Default)]
struct State {
    generation: Option<u64>,
    created: Option<SystemTime>,
    /// When the last successful check ended, or when the follower started.
    checked: Option<Instant>,
    is_waiting: bool,
    swaps: u64,
    fetched_bytes: u64,
    built_files: u64,
    delta_failures: u64,
    remaining_bytes: u64,
    failures: BTreeMap<&'static str, u64>,
}

impl Status {
    /// Adds a follower. Returns its state.
    pub(super) fn add(
        &mut self,
        folder: String,
        follower: &Follower,
        max_age: Option<Duration>,
    ) -> FolderStatus {
        let (generation, created) = (follower.generation(), follower.created());
        let checked = Some(Instant::now());
        // All causes have a metric from the start, so that Prometheus sees the first failure.
        let failures = Error::CODES.map(|code| (code, 0)).into();
        let state = State { generation, created, checked, failures, ..State::default() };
        let status = FolderStatus { folder, max_age, state: Arc::new(Mutex::new(state)) };
        self.folders.push(status.clone());
        status
    }

    /// Records that the followers are stopping.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }
}

impl FolderStatus {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the folder, as it was given.
    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    /// Records the progress of a generation that is fetched.
    pub(super) fn fetching(&self, fetched: Fetched) {
        self.state().remaining_bytes = fetched.total_bytes.saturating_sub(fetched.bytes);
    }

    /// Records a swap that was completed at the start: an earlier follower was killed in it.
    pub(super) fn completed(&self, swapped: &Swapped) {
        self.state().count(swapped);
    }

    /// Records the result of a check. `is_waiting` says whether a complete generation waits for
    /// others of its group.
    pub(super) fn checked(
        &self,
        follower: &Follower,
        result: &Result<Option<Swapped>, Error>,
        is_waiting: bool,
    ) {
        let mut state = self.state();
        (state.generation, state.created) = (follower.generation(), follower.created());
        state.is_waiting = is_waiting;
        match result {
            Ok(swapped) => {
                state.checked = Some(Instant::now());
                state.remaining_bytes = 0;
                if let Some(swapped) = swapped {
                    state.count(swapped);
                }
            }
            Err(error) => *state.failures.entry(error.code()).or_default() += 1,
        }
    }

    fn problem(&self) -> Option<String> {
        let state = self.state();
        let Some(created) = state.created else {
            return Some("no generation was fetched yet".to_owned());
        };
        let (age, max) = (age(created), self.max_age?);
        (age > max).then(|| {
            format!("the generation is {} old, and --max-age is {}", duration(age), duration(max))
        })
    }
}

impl State {
    fn count(&mut self, swapped: &Swapped) {
        self.swaps += 1;
        self.fetched_bytes += swapped.fetched_bytes;
        self.built_files += swapped.built_files;
        self.delta_failures += swapped.delta_failures.len() as u64;
    }
}

/// Returns the time since a publication. A clock that was set back makes it zero.
fn age(created: SystemTime) -> Duration {
    now().duration_since(created).unwrap_or_default()
}

/// A metric of a folder.
struct Metric {
    name: &'static str,
    help: &'static str,
    /// Returns its value, if it is known.
    value: fn(&State) -> Option<f64>,
}

const GAUGES: [Metric; 5] = [
    Metric {
        name: "nuthatch_follow_generation",
        help: "Number of the generation in the folder.",
        value: |of| of.generation.map(|number| number as f64),
    },
    Metric {
        name: "nuthatch_follow_age_seconds",
        help: "Time since its publication.",
        value: |of| of.created.map(|created| age(created).as_secs_f64()),
    },
    Metric {
        name: "nuthatch_follow_check_age_seconds",
        help: "Time since the last successful check, or since the start until there is one.",
        value: |of| of.checked.map(|checked| checked.elapsed().as_secs_f64()),
    },
    Metric {
        name: "nuthatch_follow_waiting",
        help: "Whether a complete generation waits for others of its group.",
        value: |of| Some(f64::from(u8::from(of.is_waiting))),
    },
    Metric {
        name: "nuthatch_follow_remaining_bytes",
        help: "Bytes left to fetch.",
        value: |of| Some(of.remaining_bytes as f64),
    },
];

const COUNTERS: [Metric; 4] = [
    Metric {
        name: "nuthatch_follow_swaps",
        help: "Generations that were swapped in.",
        value: |of| Some(of.swaps as f64),
    },
    Metric {
        name: "nuthatch_follow_fetched_bytes",
        help: "Bytes fetched for completed swaps.",
        value: |of| Some(of.fetched_bytes as f64),
    },
    Metric {
        name: "nuthatch_follow_built_files",
        help: "Files that were built from deltas.",
        value: |of| Some(of.built_files as f64),
    },
    Metric {
        name: "nuthatch_follow_delta_failures",
        help: "Files that were fetched because their delta could not be used.",
        value: |of| Some(of.delta_failures as f64),
    },
];

/// Adds a sample for each folder whose value is known.
fn by_folder(
    mut family: MetricFamily<'_>,
    folders: &[(String, State)],
    value: impl Fn(&State) -> Option<f64>,
) {
    for (folder, state) in folders {
        if let Some(value) = value(state) {
            family.sample(&[("folder", folder)], value);
        }
    }
}

impl MetricsSource for Status {
    fn metrics(&self, format: MetricsFormat) -> String {
        let folders = self.folders.iter().map(|of| (of.folder.clone(), of.state().clone()));
        let folders: Vec<_> = folders.collect();
        let mut text = MetricsText::new(format);
        for Metric { name, help, value } in GAUGES {
            by_folder(text.gauge(name, help), &folders, value);
        }
        for Metric { name, help, value } in COUNTERS {
            by_folder(text.counter(name, help), &folders, value);
        }
        let help =
            "Whether /healthz responds with 200 for the folder, unless the server is stopping.";
        let mut healthy = text.gauge("nuthatch_follow_healthy", help);
        for folder in &self.folders {
            let value = u8::from(folder.problem().is_none());
            healthy.sample(&[("folder", &folder.folder)], value);
        }
        let mut failures = text.counter("nuthatch_follow_failures", "Failed checks by cause.");
        for (folder, state) in &folders {
            for (cause, count) in &state.failures {
                failures.sample(&[("folder", folder), ("cause", cause)], count);
            }
        }
        text.finish()
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    fn live(&self) -> LiveReport {
        LiveReport { server: "follower", tables: Vec::new() }
    }

    /// Returns the problems of all folders, with their names if there are several folders.
    fn problem(&self) -> Option<String> {
        let problems = self.folders.iter().filter_map(|of| {
            let problem = of.problem()?;
            let is_only = self.folders.len() == 1;
            Some(if is_only { problem } else { format!("{}: {problem}", of.folder) })
        });
        let problems: Vec<_> = problems.collect();
        (!problems.is_empty()).then(|| problems.join("; "))
    }
}
