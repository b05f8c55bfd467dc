//! `nuthatch follow`.

mod checks;
mod config;
mod manual;
mod metrics;
mod on_swap;
mod once;
mod swaps;

use super::keys::{TrustedKeyArgs, read_trusted};
use super::runtime;
use crate::arguments::{AdminReloader, MonitoringArgs};
use crate::logs::{Logs, server_started};
use crate::outcome::{Failure, Outcome};
use crate::process::{Request, ServerProcess, end_at_once};
use crate::terminal::greet;
use checks::CheckedGroup;
use clap::Args;
use config::{Followed, FollowedGroup};
use metrics::Status;
use nuthatch_delivery::{Bandwidth, DeltaOptions, Destination, FollowOptions, Follower, Group};
use nuthatch_units::{bytes, format_duration, parse_size, parse_time};
use on_swap::OnSwap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Minimum of --delta-memory in bytes.
const MIN_DELTA_MEMORY: u64 = 32 << 20;
/// Maximum of --delta-threads.
const MAX_DELTA_THREADS: i64 = 256;
/// Time in which what the checks do ends, after a request to stop.
const STOP_TIME: Duration = Duration::from_secs(1);
/// Maximum number of threads on which groups are checked.
const MAX_THREADS: usize = 4;

/// Keep folders at the current generations of folders or object stores
#[derive(Debug, Args)]
#[command(long_about = manual::ABOUT, after_long_help = manual::NOTES)]
pub(crate) struct Follow {
    /// The destination of "nuthatch publish", or `https://host/path` of a server with its files
    #[arg(value_name = "SRC", required_unless_present = "config")]
    source: Option<String>,
    /// The folder; it is created if it does not exist
    #[arg(value_name = "DIR", required_unless_present = "config")]
    folder: Option<PathBuf>,
    /// Follow the snapshots that this file (TOML) lists, instead of SRC and DIR; see below
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "folder"])]
    config: Option<PathBuf>,
    /// Check once and exit: with status 0 if each folder has the current generation
    #[arg(long, conflicts_with_all = ["interval", "max_age", "admin"])]
    once: bool,
    /// Time between checks, varied at random by up to a tenth
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    interval: Duration,
    /// Maximum number of bytes that are fetched in a second, such as 50MiB; no limit by default
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bandwidth: Option<u64>,
    /// Maximum length of a file that is built from deltas, and of its keys and values without
    /// compression, such as 4GiB; 0 to fetch whole files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    delta_limit: u64,
    /// Number of threads that build a file; they have the lowest priority
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MAX_DELTA_THREADS))]
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
    /// does not run again. A command that was not started yet runs at the next start.
    #[arg(long, value_name = "COMMAND")]
    on_swap: Option<String>,
    /// Return 503 from /healthz when the generation in DIR was published longer ago, such as 2h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_age: Option<Duration>,
    #[command(flatten)]
    monitoring: MonitoringArgs,
}

impl Follow {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        self.monitoring.check(None, false)?;
        self.check_numbers()?;
        let logs = self.monitoring.start_logs("nuthatch-follow")?;
        let mut status = Status::default();
        let bandwidth = self.bandwidth.map(Bandwidth::new);
        let groups = self.groups()?.into_iter();
        let groups = groups
            .map(|group| self.open(group, bandwidth.as_ref(), &mut status))
            .collect::<Result<Vec<_>, _>>()?;
        if self.once { once::follow(groups) } else { self.follow(groups, status, &logs) }
    }

    fn check_numbers(&self) -> Result<(), Failure> {
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
        Ok(())
    }

    /// Returns what is followed: the snapshots of --config, or that of the arguments.
    fn groups(&self) -> Result<Vec<FollowedGroup>, Failure> {
        if let Some(config) = &self.config {
            return config::read(config);
        }
        let (source, folder) = (self.source.clone(), self.folder.clone());
        let snapshot = Followed {
            source: source.unwrap_or_default(),
            folder: folder.unwrap_or_default(),
            trusted_keys: None,
            max_age: None,
            on_swap: None,
        };
        Ok(vec![FollowedGroup { name: None, same_metadata: None, snapshots: vec![snapshot] }])
    }

    /// Opens the folders of a group.
    fn open(
        &self,
        group: FollowedGroup,
        bandwidth: Option<&Bandwidth>,
        status: &mut Status,
    ) -> Result<CheckedGroup, Failure> {
        let (mut followers, mut of_each) = (Vec::new(), Vec::new());
        for snapshot in group.snapshots {
            let command = snapshot.on_swap.or_else(|| self.on_swap.clone());
            let trusted_keys = match &snapshot.trusted_keys {
                Some(keys) => read_trusted(keys)?,
                None => self.keys.read()?,
            };
            let options = FollowOptions {
                trusted_keys,
                bandwidth: bandwidth.cloned(),
                previous: self.previous as usize,
                deltas: DeltaOptions {
                    limit: self.delta_limit,
                    threads: usize::from(self.delta_threads),
                    memory: self.delta_memory as usize,
                },
                confirms_swaps: command.is_some(),
            };
            let destination = Destination::open(&snapshot.source)?;
            let follower = Follower::open(destination, &snapshot.folder, options)?;
            let name = snapshot.folder.display().to_string();
            followers.push(follower);
            of_each.push((name, snapshot.max_age.or(self.max_age), OnSwap::new(command)));
        }
        let followers = Group::new(followers);
        let followers = match &group.same_metadata {
            Some(name) => followers.same_metadata(name),
            None => followers,
        };
        // The group may have completed or undone a swap in which an earlier one was killed.
        let folders = followers.followers().iter().zip(of_each);
        let folders = folders.map(|(follower, (name, max_age, on_swap))| {
            (status.add(name, follower, max_age), on_swap)
        });
        let folders = folders.collect();
        Ok(CheckedGroup { name: group.name, group: followers, folders })
    }

    fn follow(
        &self,
        groups: Vec<CheckedGroup>,
        status: Status,
        logs: &Logs,
    ) -> Result<Outcome, Failure> {
        let process = ServerProcess::begin()?;
        let (admin, admin_reloader) = self.monitoring.open_admin(status.clone(), logs)?;
        let (stop, mut stopped) = watch::channel(false);
        process.on_request(move |request| match request {
            Request::Stop => {
                status.stop();
                // The receiver lives as long as the process.
                let _ = stop.send(true);
            }
            Request::StopAtOnce => end_at_once(),
            Request::Reload => reload(&admin_reloader),
        });
        greet("", &[], admin.addresses(), &self.greeting(&groups))?;
        server_started();
        let runtime = runtime(groups.len().clamp(1, MAX_THREADS))?;
        runtime.block_on(async {
            let mut checks = JoinSet::new();
            for group in groups {
                checks.spawn(group.run(self.interval));
            }
            tokio::select! {
                // Ends only by a panic.
                _ = checks.join_next() => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            let _ = tokio::time::timeout(STOP_TIME, checks.shutdown()).await;
        });
        // A read from a folder can block for good, for example on a network mount.
        runtime.shutdown_timeout(STOP_TIME);
        Ok(Outcome::Success)
    }

    fn greeting(&self, groups: &[CheckedGroup]) -> String {
        let every = format_duration(self.interval);
        let followers: Vec<_> = groups.iter().flat_map(|group| group.group.followers()).collect();
        match (&followers[..], &self.folder) {
            ([one], Some(folder)) => {
                let (from, folder) = (one.source(), folder.display());
                format!("{folder} follows {from}, checked every {every}")
            }
            (all, _) => {
                format!("{} folders follow their sources, checked every {every}", all.len())
            }
        }
    }
}

/// Reads the token of the admin endpoint again, and logs that. On an error the previous token
/// stays, and the error is logged.
fn reload(admin: &AdminReloader) {
    match admin.read().map_err(Failure::into_message) {
        Ok(rules) => {
            admin.apply(rules);
            tracing::info!(target: "nuthatch::follow", "admin token reloaded");
        }
        Err(error) => tracing::error!(target: "nuthatch::follow", %error,
            "reload failed; the previous token stays in use"),
    }
}
