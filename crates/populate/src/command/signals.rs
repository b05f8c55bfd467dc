//! SIGINT and SIGTERM: the first ends the run, which leaves no files, and another one the process.

use super::Failure;
use nuthatch_populate::Error;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The exit status after a second signal.
const SECOND_SIGNAL: i32 = 130;

/// Minimum time between the first signal and another one. timeout(1) and some supervisors send one
/// signal twice: to the process, and to its group.
const MIN_TIME_BETWEEN: Duration = Duration::from_millis(500);

/// Returns a flag that is set at the first signal. Another signal ends the process.
pub(super) fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let failure = |error| Error::System(format!("handle signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failure)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let handle = move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            if first.get_or_insert_with(Instant::now).elapsed() >= MIN_TIME_BETWEEN {
                #[expect(clippy::disallowed_methods, reason = "the operator requested it again")]
                std::process::exit(SECOND_SIGNAL);
            }
            flag.store(true, Ordering::Relaxed);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(handle).map_err(failure)?;
    Ok(interrupted)
}
