//! Runs of a job: one, or one after another.

use super::signals::on_signals;
use super::{Failure, print};
use nuthatch_populate::{Error, Job, Observer, Progress, run as run_once};
use nuthatch_terminal::{Display, print_message};
use nuthatch_units::{duration, format_duration};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use tracing::{error, warn};

/// The longest time between two looks at the flag of interruption.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What is printed, and where problems are reported.
#[derive(Clone, Copy)]
pub(super) struct Output {
    pub(super) is_quiet: bool,
    pub(super) as_json: bool,
    /// Whether problems of a run that goes on are records of the log.
    pub(super) uses_log: bool,
}

/// Runs a job, once or until it is interrupted.
pub(super) fn run(job: &Job, every: Option<Duration>, output: Output) -> Result<(), Failure> {
    let Output { is_quiet, as_json, uses_log } = output;
    let interrupted = on_signals()?;
    loop {
        let start = Instant::now();
        let display = Display::new(is_quiet || as_json, None);
        let shown = Arc::new(Shown { display, uses_log });
        let observer: Arc<dyn Observer> = Arc::clone(&shown) as _;
        let result = run_once(job, now(), &interrupted, &observer);
        shown.display.finish();
        let printed = match result {
            Ok(report) if !is_quiet => print::report(&report, as_json),
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        };
        let Some(every) = every else { return printed };
        if let (true, Err(Failure::Job(error))) = (as_json, &printed) {
            print::failure(error)?;
        }
        match printed {
            Err(Failure::Job(Error::Interrupted)) => return Ok(()),
            Err(Failure::Job(error @ Error::InterruptedPublication { .. })) => {
                warn!(target: "nuthatch::populate", "{error}");
                return Ok(());
            }
            Err(Failure::Job(error)) => {
                let (output, next) = (job.output.display(), format_duration(every));
                error!(target: "nuthatch::populate", %output, "{error}; next run in {next}");
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
struct Shown {
    display: Display,
    uses_log: bool,
}

impl Observer for Shown {
    fn progress(&self, progress: Progress) {
        match progress {
            Progress::Reading { rows, total_rows, bytes } => {
                self.display.rows("reading", rows, total_rows, bytes);
            }
            Progress::Building(progress) => self.display.building(progress),
            Progress::Checking => self.display.stage("checking", 0, 0),
            Progress::Publishing { bytes, total_bytes } => {
                self.display.transferred("publishing", "", bytes, total_bytes);
            }
            _ => {}
        }
    }

    fn attempt_failed(&self, attempt: u32, error: &Error, wait: Duration) {
        let wait = duration(wait);
        self.display.suspend(|| {
            if self.uses_log {
                warn!(target: "nuthatch::populate", attempt, "{error}; again in {wait}");
            } else {
                print_message(format_args!("attempt {attempt}: {error}; again in {wait}"));
            }
        });
    }

    fn warning(&self, message: &str) {
        self.display.suspend(|| {
            if self.uses_log {
                warn!(target: "nuthatch::populate", "{message}");
            } else {
                print_message(format_args!("warning: {message}"));
            }
        });
    }
}
