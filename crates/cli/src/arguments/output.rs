//! Arguments of commands that write a snapshot: its path, its options, and resources.

use crate::outcome::{Failure, Outcome};
use crate::terminal::{Display, Stdout, print_error_lines, print_summary};
use clap::{Args, ValueEnum};
use nuthatch_cli::output::json_string;
use nuthatch_snapshot::{Compression, Error, OnDuplicate, Summary, Writer, WriterOptions};
use nuthatch_units::{bytes, duration, grouped, parse_size};
use std::env;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

/// The snapshot that a command writes.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Snapshot file, published when it is complete; - is standard output
    ///
    /// An existing file is replaced. The new file gets the mode of the old one, and its owner if
    /// the system permits it. If the path is a symbolic link, the file that it points to is
    /// replaced. The path must not be a device, a pipe, a socket or a folder.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// How to handle several rows with the same key
    #[arg(
        long,
        value_enum,
        value_name = "CHOICE",
        default_value = "error",
        help_heading = "Output"
    )]
    on_duplicate: KeepRow,
    /// Compression of values: none, zstd (level 3) or zstd:LEVEL with a level from 1 to 22
    ///
    /// Each value is compressed by itself, with a dictionary trained on the values. A value that
    /// would shrink by less than an eighth stays uncompressed. Readers decompress values into
    /// memory instead of reading them in place.
    #[arg(long, value_name = "METHOD", default_value = "none", value_parser = parse_compression,
          help_heading = "Output")]
    compress: Compression,
    /// Seed of the key hash
    ///
    /// Use another seed if a build fails because too many keys, chosen by an attacker, have the
    /// same hash.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Output")]
    seed: u64,
    /// Set a value of the metadata, which nuthatch info prints; can be repeated
    ///
    /// Names have 1 to 255 bytes; all metadata takes at most 1 MiB. If a name is repeated, its last
    /// value is stored. Tools expect the values of name, created (a time such as
    /// 2026-11-23T22:00:00Z), source and schema to be text.
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = parse_meta,
          help_heading = "Output")]
    metadata: Vec<(String, String)>,
    /// Build a set of N files, by key hash, with a manifest at the path of --output
    ///
    /// All commands open the set by the path of the manifest, as if it were one file. The N files,
    /// called shards, are in the same folder; those that did not change since the last build are
    /// kept. Each shard needs up to 32 KiB of --memory, so many shards need a larger budget.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536),
          help_heading = "Output")]
    shards: Option<u32>,

    /// Memory budget, such as 512M or 2GiB, at least 32M
    ///
    /// Data beyond the budget is spilled to temporary files in the folder of the output, or in
    /// TMPDIR for standard output. A row that is longer than 1 MiB takes up to eight times its
    /// length in addition to the budget.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_memory,
          help_heading = "Resources")]
    memory: u64,
    /// Maximum number of threads [default: all cores]
    ///
    /// The bytes of the file do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024),
          help_heading = "Resources")]
    threads: Option<u16>,

    /// Print neither progress nor a summary
    #[arg(short, long, help_heading = "Messages")]
    pub(crate) quiet: bool,
    /// Print the summary as a JSON object
    #[arg(long, conflicts_with = "quiet", help_heading = "Messages")]
    json: bool,
}

/// The result of a build: its summary, and the file if it has no name.
pub(crate) type Built = (Summary, Option<File>);

/// How to handle several rows with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeepRow {
    /// Fail and report the key and the positions of two rows
    Error,
    /// Keep the first row
    First,
    /// Keep the last row
    Last,
}

/// Minimum memory budget in bytes.
const MIN_MEMORY: u64 = 32 << 20;

fn parse_memory(text: &str) -> Result<u64, String> {
    let size = parse_size(text)?;
    if size < MIN_MEMORY {
        return Err("expected at least 32M".to_owned());
    }
    Ok(size)
}

fn parse_compression(text: &str) -> Result<Compression, String> {
    let level = match text {
        "none" => return Ok(Compression::None),
        "zstd" => Some(3),
        _ => text.strip_prefix("zstd:").and_then(|level| level.parse().ok()),
    };
    match level.filter(|level| (1..=22).contains(level)) {
        Some(level) => Ok(Compression::Zstd { level }),
        None => Err("expected none, zstd or zstd:LEVEL with a level from 1 to 22".to_owned()),
    }
}

fn parse_meta(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    if !(1..=255).contains(&name.len()) {
        return Err("expected a name of 1 to 255 bytes before the =".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

impl OutputArgs {
    /// Fails if the options contradict each other.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.to_stdout() && self.shards.is_some() {
            let problem = "--shards: expected a path for --output, found standard output, which \
                           takes one file";
            return Err(Failure::Usage(problem.to_owned()));
        }
        Ok(())
    }

    /// Returns the path of the snapshot. A shell may have opened any file as standard output.
    pub(crate) fn path(&self) -> &Path {
        if self.to_stdout() { Path::new("/dev/stdout") } else { &self.output }
    }

    /// Returns whether the snapshot goes to standard output.
    fn to_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    /// Returns the maximum number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads.map_or_else(cores, usize::from)
    }

    /// Returns the memory budget in bytes.
    pub(crate) fn memory(&self) -> usize {
        usize::try_from(self.memory).unwrap_or(usize::MAX)
    }

    /// Starts the snapshot. `reserved` bytes of the memory budget are for reading inputs.
    pub(crate) fn writer(&self, reserved: usize, display: &Arc<Display>) -> Result<Writer, Error> {
        let display = Arc::clone(display);
        let options = WriterOptions::new()
            .on_duplicate(match self.on_duplicate {
                KeepRow::Error => OnDuplicate::Error,
                KeepRow::First => OnDuplicate::First,
                KeepRow::Last => OnDuplicate::Last,
            })
            .compression(self.compress)
            .memory(self.memory().saturating_sub(reserved))
            .threads(self.threads())
            .seed(self.seed)
            .shards(self.shards.unwrap_or(0))
            .progress(move |progress| display.building(progress));
        let mut writer = if self.to_stdout() {
            options.create_unnamed(env::temp_dir())?
        } else {
            options.create(&self.output)?
        };
        for (name, value) in &self.metadata {
            writer.set_metadata(name, value.as_bytes())?;
        }
        Ok(writer)
    }

    /// Finishes the snapshot, and publishes it if it has a path.
    pub(crate) fn finish(&self, writer: Writer) -> Result<Built, Error> {
        if self.to_stdout() {
            let (summary, file) = writer.finish_file()?;
            return Ok((summary, Some(file)));
        }
        Ok((writer.finish()?, None))
    }

    /// Writes a file without a name to standard output, and prints the summary.
    pub(crate) fn publish(&self, built: Built, time: Duration) -> Result<Outcome, Failure> {
        let (summary, file) = built;
        if let Some(file) = file {
            let mut stdout = Stdout::new();
            stdout.write_file(file).map_err(incomplete_output)?;
            stdout.flush().map_err(incomplete_output)?;
        }
        if !self.quiet {
            let report = self.report(&summary, time);
            if self.to_stdout() {
                print_error_lines(&report);
            } else {
                print_summary(&report)?;
            }
        }
        Ok(Outcome::Success)
    }

    fn report(&self, summary: &Summary, time: Duration) -> String {
        let &Summary { entries, rows, file_len, key_bytes, value_bytes, .. } = summary;
        let over = summary.overhead_per_entry();
        let mut text = String::new();
        let written = if self.json {
            let mut file = Vec::new();
            json_string(&self.output.to_string_lossy(), &mut file);
            let (file, seconds) = (String::from_utf8_lossy(&file), time.as_secs_f64());
            writeln!(
                text,
                "{{\"file\":{file},\"entries\":{entries},\"rows\":{rows},\
                 \"file_bytes\":{file_len},\"key_bytes\":{key_bytes},\
                 \"value_bytes\":{value_bytes},\"overhead_bytes_per_entry\":{over:.3},\
                 \"seconds\":{seconds:.3}}}"
            )
        } else {
            let repeated = match rows - entries {
                0 => String::new(),
                repeated => format!(" ({} more rows repeated a key)", grouped(repeated)),
            };
            writeln!(
                text,
                "file      {}\n\
                 entries   {}{repeated}\n\
                 size      {} ({})\n\
                 overhead  {over:.2} bytes per entry, beyond keys and stored values\n\
                 time      {}",
                self.output.display(),
                grouped(entries),
                bytes(file_len),
                grouped(file_len) + " bytes",
                duration(time),
            )
        };
        // Writing to a string cannot fail.
        let _ = written;
        text
    }
}

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Returns the failure of writing the snapshot to standard output. A reader of text may have
/// enough of it; part of a snapshot is of no use.
fn incomplete_output(failure: Failure) -> Failure {
    match failure {
        Failure::ClosedPipe => Failure::Error(
            "standard output: the reader closed it before it had the whole snapshot".to_owned(),
        ),
        other => other,
    }
}
