//! Metrics and health of a follower.

use crate::commands::delivery::now;
use nuthatch_delivery::{Error, Fetched, Follower, Swapped};
use nuthatch_listen::{MetricsFormat, MetricsSource, MetricsText};
use nuthatch_units::duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The state of a follower for its operator. Clones share it.
#[derive(Clone)]
pub(super) struct Status {
    max_age: Option<Duration>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_stopping: bool,
    generation: Option<u64>,
    created: Option<SystemTime>,
    checked: Option<Instant>,
    swaps: u64,
    fetched_bytes: u64,
    built_files: u64,
    delta_failures: u64,
    remaining_bytes: u64,
    failures: BTreeMap<&'static str, u64>,
}

impl Status {
    pub(super) fn new(follower: &Follower, max_age: Option<Duration>) -> Self {
        let (generation, created) = (follower.generation(), follower.created());
        let state = State { generation, created, ..State::default() };
        Self { max_age, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the follower is stopping.
    pub(super) fn stop(&self) {
        self.state().is_stopping = true;
    }

    /// Records the progress of a generation that is fetched.
    pub(super) fn fetching(&self, fetched: Fetched) {
        self.state().remaining_bytes = fetched.total_bytes.saturating_sub(fetched.bytes);
    }

    /// Records the result of a check.
    pub(super) fn checked(&self, follower: &Follower, result: &Result<Option<Swapped>, Error>) {
        let mut state = self.state();
        (state.generation, state.created) = (follower.generation(), follower.created());
        match result {
            Ok(swapped) => {
                state.checked = Some(Instant::now());
                state.remaining_bytes = 0;
                if let Some(swapped) = swapped {
                    state.swaps += 1;
                    state.fetched_bytes += swapped.fetched_bytes;
                    state.built_files += swapped.built_files;
                    state.delta_failures += swapped.delta_failures.len() as u64;
                }
            }
            Err(error) => *state.failures.entry(error.code()).or_default() += 1,
        }
    }
}

/// Returns the time since a publication. A clock that was set back makes it zero.
fn age(created: SystemTime) -> Duration {
    now().duration_since(created).unwrap_or_default()
}

impl MetricsSource for Status {
    fn metrics(&self, format: MetricsFormat) -> String {
        let state = self.state();
        let mut text = MetricsText::new(format);
        text.gauge("nuthatch_follow_generation", "Number of the generation in the folder.")
            .sample_if_known(state.generation);
        text.gauge("nuthatch_follow_age_seconds", "Time since its publication.")
            .sample_if_known(state.created.map(|created| age(created).as_secs_f64()));
        text.gauge("nuthatch_follow_check_age_seconds", "Time since the last successful check.")
            .sample_if_known(state.checked.map(|checked| checked.elapsed().as_secs_f64()));
        text.counter("nuthatch_follow_swaps", "Generations that were swapped in.")
            .sample(&[], state.swaps);
        let help = "Bytes fetched for completed swaps.";
        text.counter("nuthatch_follow_fetched_bytes", help).sample(&[], state.fetched_bytes);
        let help = "Files that were built from deltas.";
        text.counter("nuthatch_follow_built_files", help).sample(&[], state.built_files);
        let help = "Files that were fetched because their delta could not be used.";
        text.counter("nuthatch_follow_delta_failures", help).sample(&[], state.delta_failures);
        let help = "Bytes left to fetch.";
        text.gauge("nuthatch_follow_remaining_bytes", help).sample(&[], state.remaining_bytes);
        text.counter("nuthatch_follow_failures", "Failed checks by cause.")
            .by_label("cause", &state.failures);
        text.finish()
    }

    fn is_stopping(&self) -> bool {
        self.state().is_stopping
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
