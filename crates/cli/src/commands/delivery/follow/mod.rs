//! `nuthatch follow`.

mod manual;
mod metrics;
mod on_swap;

use super::keys::TrustedKeyArgs;
use super::runtime;
use crate::arguments::MonitoringArgs;
use crate::logs::server_started;
use crate::outcome::{Failure, Outcome};
use crate::process::{Request, ServerProcess, end_at_once};
use crate::terminal::{Display, greet, print_message, print_result};
use clap::Args;
use metrics::Status;
use nuthatch_delivery::{
    DeltaOptions, Destination, FollowOptions, Follower, Swapped, delay_before_check,
};
use nuthatch_units::{bytes, format_duration, parse_size, parse_time};
use on_swap::OnSwap;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Minimum of --delta-memory in bytes.
const MIN_DELTA_MEMORY: u64 = 32 << 20;

/// Keep a folder at the current generation of a folder or an object store
#[derive(Debug, Args)]
#[command(long_about = manual::ABOUT, after_long_help = manual::NOTES)]
pub(crate) struct Follow {
    /// The destination of "nuthatch publish", or `https://host/path` of a server with its files
    #[arg(value_name = "SRC")]
    source: String,
    /// The folder; it is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Check once, and exit when DIR has the current generation
    #[arg(long, conflicts_with_all = ["interval", "max_age", "admin"])]
    once: bool,
    /// Time between checks, varied at random by a tenth
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    interval: Duration,
    /// Maximum number of bytes that are fetched in a second, such as 50MiB; no limit by default
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bandwidth: Option<u64>,
    /// Maximum length of a file that is built from deltas, such as 4GiB; 0 to fetch whole files only
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    delta_limit: u64,
    /// Number of threads that build a file; they have the lowest priority
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    delta_threads: u16,
    /// Memory for building a file, at least 32MiB
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    delta_memory: u64,
    /// Number of generations before the current one that stay in DIR
    #[arg(long, value_name = "N", default_value_t = 1)]
    previous: u32,
    #[command(flatten)]
    keys: TrustedKeyArgs,
    /// Run this command of the shell after each swap
    ///
    /// Its environment has `NUTHATCH_PATH`, the path that programs open, and `NUTHATCH_GENERATION`.
    /// The next check waits for its end. If the follower ends first, the command is killed, and
    /// does not run again.
    #[arg(long, value_name = "COMMAND")]
    on_swap: Option<String>,
    /// Return 503 from /healthz when the generation in DIR was published longer ago, such as 2h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_age: Option<Duration>,
    /// Allow admin endpoints that other machines can reach
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    monitoring: MonitoringArgs,
}

impl Follow {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        self.monitoring.check(None, self.insecure)?;
        let destination = Destination::open(&self.source)?;
        let options = FollowOptions {
            trusted_keys: self.keys.read()?,
            bytes_per_second: self.bandwidth,
            previous: self.previous as usize,
            deltas: DeltaOptions {
                limit: self.delta_limit,
                threads: usize::from(self.delta_threads),
                memory: self.delta_memory as usize,
            },
        };
        if self.bandwidth == Some(0) {
            return Err(Failure::Usage("--bandwidth: expected at least 1 byte, found 0".into()));
        }
        if self.interval.is_zero() {
            return Err(Failure::Usage("--interval: expected more than 0s, found 0s".into()));
        }
        if self.delta_memory < MIN_DELTA_MEMORY {
            let found = bytes(self.delta_memory);
            let problem = format!("--delta-memory: expected at least 32MiB, found {found}");
            return Err(Failure::Usage(problem));
        }
        let follower = Follower::open(destination, &self.folder, options)?;
        if self.once { self.follow_once(follower) } else { self.follow(follower) }
    }

    fn follow_once(&self, mut follower: Follower) -> Result<Outcome, Failure> {
        let (runtime, display) = (runtime()?, Display::new(false, None));
        let swapped = runtime.block_on(follower.check(|fetched| {
            display.transferred("fetching", "", fetched.bytes, fetched.total_bytes);
        }));
        display.finish();
        if let Some(swapped) = swapped? {
            for failure in &swapped.delta_failures {
                print_message(format_args!("note: no delta used for {failure}"));
            }
            print_result(&text(&swapped))?;
            let on_swap = OnSwap::new(self.on_swap.as_deref());
            runtime.block_on(on_swap.run(&swapped)).map_err(Failure::Error)?;
        } else if let (Some(path), Some(generation)) = (follower.path(), follower.generation()) {
            print_result(&format!("{}: generation {generation} is current\n", path.display()))?;
        }
        Ok(Outcome::Success)
    }

    fn follow(&self, follower: Follower) -> Result<Outcome, Failure> {
        let process = ServerProcess::begin()?;
        let _logs = self.monitoring.start_logs()?;
        let status = Status::new(&follower, self.max_age);
        let admin = self.monitoring.open_admin(status.clone())?;
        let (stop, mut stopped) = watch::channel(false);
        let stopping = status.clone();
        process.on_request(move |request| match request {
            Request::Stop => {
                stopping.stop();
                // The receiver lives as long as the process.
                let _ = stop.send(true);
            }
            Request::StopAtOnce => end_at_once(),
            Request::Reload => {}
        });
        let (from, folder) = (follower.source(), self.folder.display());
        let every = format_duration(self.interval);
        let line = format!("{folder} follows {from}, checked every {every}");
        greet("", &[], admin.addresses(), &line)?;
        server_started();
        runtime()?.block_on(async {
            tokio::select! {
                () = self.run_checks(follower, &status) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        });
        Ok(Outcome::Success)
    }

    /// Checks, waits and checks again, for as long as the returned future is polled.
    async fn run_checks(&self, mut follower: Follower, status: &Status) {
        let on_swap = OnSwap::new(self.on_swap.as_deref());
        let mut failures = 0;
        loop {
            let checked = follower.check(|fetched| status.fetching(fetched)).await;
            failures = if checked.is_ok() { 0 } else { failures + 1 };
            status.checked(&follower, &checked);
            match checked {
                Ok(Some(swapped)) => {
                    for failure in &swapped.delta_failures {
                        tracing::warn!(target: "nuthatch::follow", "no delta used for {failure}");
                    }
                    // The reader of the output may have ended; the folder has others.
                    let _ = print_result(&text(&swapped));
                    if let Err(problem) = on_swap.run(&swapped).await {
                        tracing::warn!(target: "nuthatch::follow", "{problem}");
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    let code = error.code();
                    tracing::warn!(target: "nuthatch::follow", code, "{error}");
                }
            }
            tokio::time::sleep(delay_before_check(self.interval, failures, random())).await;
        }
    }
}

fn text(swapped: &Swapped) -> String {
    let (path, generation) = (swapped.path.display(), swapped.generation);
    let fetched = bytes(swapped.fetched_bytes);
    let built = match swapped.built_files {
        0 => String::new(),
        1 => ", built from a delta".to_owned(),
        files => format!(", {files} files built from deltas"),
    };
    format!("{path}: generation {generation} is current, {fetched} fetched{built}\n")
}

/// Returns a random number from 0 to 1. Each hasher of the standard library has other keys.
fn random() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}
