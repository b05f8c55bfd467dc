//! Runs of a job: one, or one after another.

use super::{Failure, print};
use nuthatch_populate::{Error, Job, Observer, Progress, run as run_once};
use nuthatch_terminal::{Display, print_message};
use nuthatch_units::{duration, format_duration};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The longest time between two looks at the flag of interruption.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The exit status after a second signal.
const SECOND_SIGNAL: i32 = 130;

/// Runs a job, once or until it is interrupted.
pub(super) fn run(
    job: &Job,
    every: Option<Duration>,
    (is_quiet, as_json): (bool, bool),
) -> Result<(), Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first signal ends the run, which leaves no files; the second one ends the process.
        let registered =
            flag::register_conditional_shutdown(signal, SECOND_SIGNAL, Arc::clone(&interrupted))
                .and_then(|_| flag::register(signal, Arc::clone(&interrupted)));
        registered.map_err(|error| Error::System(format!("handle signals: {error}")))?;
    }
    loop {
        let start = Instant::now();
        let shown = Arc::new(Shown(Display::new(is_quiet || as_json, None)));
        let observer: Arc<dyn Observer> = Arc::clone(&shown) as _;
        let result = run_once(job, now(), &interrupted, &observer);
        shown.0.finish();
        let printed = match result {
            Ok(report) if !is_quiet => print::report(&report, as_json),
            Ok(_) => Ok(()),
            Err(error) => {
                if as_json {
                    print::failure(&error)?;
                }
                Err(error.into())
            }
        };
        let Some(every) = every else { return printed };
        match printed {
            Err(Failure::Job(Error::Interrupted)) => return Ok(()),
            Err(Failure::Job(error)) => {
                print_message(format_args!("{error}; next run in {}", format_duration(every)));
            }
            other => other?,
        }
        while start.elapsed() < every {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            let left = every.saturating_sub(start.elapsed());
            std::thread::park_timeout(left.min(LOOK_INTERVAL));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the command is where the time comes from")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Shows the progress of a run.
struct Shown(Display);

impl Observer for Shown {
    fn progress(&self, progress: Progress) {
        match progress {
            Progress::Reading { rows, total_rows, bytes } => {
                self.0.rows("reading", rows, total_rows, bytes);
            }
            Progress::Building(progress) => self.0.building(progress),
            Progress::Checking => self.0.stage("checking", 0, 0),
            Progress::Publishing { bytes, total_bytes } => {
                self.0.transferred("publishing", "", bytes, total_bytes);
            }
            _ => {}
        }
    }

    fn attempt_failed(&self, attempt: u32, error: &Error, wait: Duration) {
        self.0.suspend(|| {
            let wait = duration(wait);
            print_message(format_args!("attempt {attempt}: {error}; again in {wait}"));
        });
    }

    fn warning(&self, message: &str) {
        self.0.suspend(|| print_message(format_args!("warning: {message}")));
    }
}
