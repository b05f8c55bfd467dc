//! The arguments.

use super::log_args::LogArgs;
use super::schedule::Output;
use super::signals::on_signals;
use super::{Failure, manual, print, schedule, simple};
use clap::Parser;
use nuthatch_populate::{Job, Publish, preview};
use nuthatch_units::parse_time;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// Build a snapshot from databases and files, check it, and publish it
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Parser)]
#[command(name = "nuthatch populate", bin_name = "nuthatch populate", version,
          arg_required_else_help = true, max_term_width = 100, long_about = manual::ABOUT,
          after_long_help = manual::NOTES)]
pub(crate) struct Arguments {
    /// Job file in TOML
    #[arg(value_name = "JOB", required_unless_present = "source", conflicts_with = "source")]
    job: Option<PathBuf>,
    #[command(flatten)]
    pub(super) source: simple::SourceArgs,
    /// Snapshot file, or the manifest of a set; overrides that of the job, and is relative to the
    /// working directory
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["job", "dry_run"])]
    output: Option<PathBuf>,
    /// Publish the snapshot, as "nuthatch publish" does; overrides that of the job
    #[arg(long, value_name = "DEST", value_parser = parse_destination)]
    publish: Option<String>,
    /// Print the entries of the first rows of each source as JSON lines, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Number of rows of --dry-run
    #[arg(long, value_name = "N", default_value_t = 10, requires = "dry_run")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Run again and again, with this time between the starts of two runs, such as 15min
    #[arg(long, value_name = "TIME", value_parser = parse_interval, conflicts_with = "dry_run")]
    every: Option<Duration>,
    /// Let the gates `max_entry_change`, `max_byte_change` and `max_value_change` pass in this run
    ///
    /// All other gates still apply. Not with --every.
    #[arg(long, conflicts_with_all = ["dry_run", "every"])]
    accept_change: bool,
    /// Print errors only
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Print the report of each run as a JSON object, also of those that fail
    #[arg(long, conflicts_with = "quiet")]
    pub(super) json: bool,
    #[command(flatten)]
    logs: LogArgs,
}

impl Arguments {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let _logs = self.logs.start()?;
        let result = self.run_job();
        if let (true, Err(Failure::Job(error))) = (self.json, &result) {
            print::failure(error)?;
        }
        result
    }

    fn run_job(&self) -> Result<(), Failure> {
        let job = self.job()?;
        if self.dry_run {
            return print::entries(&preview(&job, self.rows, &on_signals()?)?);
        }
        // A command that runs on, and one whose log is read by a program, reports to the log.
        let uses_log = self.every.is_some() || self.logs.log_json;
        schedule::run(
            &job,
            self.every,
            Output { is_quiet: self.quiet, as_json: self.json, uses_log },
        )
    }

    fn job(&self) -> Result<Job, Failure> {
        let mut job = match &self.job {
            Some(path) => Job::read(path)?,
            None => self.source.job(self.output.as_deref())?,
        };
        if let (Some(output), Some(_)) = (&self.output, &self.job) {
            job.output.clone_from(output);
        }
        if let Some(destination) = &self.publish {
            let destination = destination.clone();
            job.publish = Some(match job.publish {
                Some(publish) => Publish { destination, ..publish },
                None => Publish::to(destination),
            });
        }
        if self.accept_change {
            let gates = &mut job.gates;
            gates.max_entry_change = None;
            gates.max_byte_change = None;
            gates.max_value_change = None;
        }
        let same = |path: &PathBuf| {
            let found = |path| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
            found(path).is_some_and(|job_file| found(&job.output) == Some(job_file))
        };
        if self.job.as_ref().is_some_and(same) {
            let output = job.output.display();
            return Err(Failure::Usage(format!("{output}: expected another file than the job")));
        }
        Ok(job)
    }
}

/// Parses the time between the starts of two runs.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_time(text)?;
    if interval.is_zero() {
        return Err("expected a time above zero, such as 15min".to_owned());
    }
    Ok(interval)
}

/// Parses the destination of a publication.
fn parse_destination(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("expected a folder, or an address such as s3://bucket/path".to_owned());
    }
    Ok(text.to_owned())
}
