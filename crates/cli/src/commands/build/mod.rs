//! `nuthatch build`: builds a snapshot.

mod manual;

use crate::outcome::{Failure, Outcome};
use crate::terminal::Display;
use crate::terminal::quote_key;
use crate::terminal::{Stdout, print_error_lines, print_summary};
use clap::{Args, ValueEnum};
use nuthatch_cli::output::json_string;
use nuthatch_import::{FieldType, Format, Inputs, Options, Pattern};
use nuthatch_snapshot::{Compression, OnDuplicate, Summary, WriterOptions};
use nuthatch_units::{bytes, duration, grouped, parse_size};
use std::env;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Build a snapshot from JSON lines, TSV, CSV, Parquet or AxonCache text
#[derive(Debug, Args)]
#[command(long_about = manual::ABOUT, after_long_help = manual::NOTES)]
pub(crate) struct Build {
    /// Input files, read in this order; - is standard input
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,
    /// Snapshot file, published when it is complete; - is standard output
    ///
    /// An existing file is replaced. The new file takes its mode, and its owner if the system
    /// permits it. If the path is a symbolic link, the file that it points to is replaced. The path
    /// must not be a device, a pipe, a socket, a folder or one of the inputs.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Format of all inputs [default: from the extension of each file]
    ///
    /// Extensions: .jsonl, .ndjson and .json for JSON lines, .tsv, .csv, .parquet, and .dta for
    /// AxonCache text. All but Parquet can be followed by .gz or .zst for compressed files. The
    /// default for standard input is JSON lines.
    #[arg(long, value_enum, help_heading = "Input")]
    format: Option<Format>,
    /// Type of values in TSV, CSV and AxonCache text [default: string]
    ///
    /// Lists are written as JSON.
    #[arg(long = "type", value_enum, value_name = "TYPE", help_heading = "Input")]
    value_type: Option<FieldType>,
    /// Column with the keys, in CSV and Parquet
    #[arg(long, value_name = "COLUMN", help_heading = "Input")]
    key: Option<String>,
    /// Column with the values, in CSV and Parquet
    ///
    /// By default, all columns besides the key have values, and the key of a value is KEY.COLUMN.
    #[arg(long, value_name = "COLUMN", help_heading = "Input")]
    value: Option<String>,
    /// Type of a CSV column, if it differs from --type; can be repeated
    #[arg(long = "column", value_name = "NAME:TYPE", value_parser = parse_column,
          help_heading = "Input")]
    columns: Vec<(String, FieldType)>,
    /// Store lists of numbers as 32-bit floats, for keys that match the pattern; can be repeated
    ///
    /// In the pattern, * matches any text and ? matches one character.
    #[arg(long = "f32", value_name = "PATTERN", help_heading = "Input")]
    f32_keys: Vec<Pattern>,

    /// How to handle several rows with the same key
    #[arg(
        long,
        value_enum,
        value_name = "CHOICE",
        default_value = "error",
        help_heading = "Output"
    )]
    on_duplicate: KeepRow,
    /// Compression of values: none, zstd or zstd:LEVEL with a level from 1 to 22
    ///
    /// Each value is compressed by itself, with a dictionary trained on the values. Readers
    /// decompress such values into memory instead of reading them in place.
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
    /// Any names of 1 to 255 bytes can be used. Readers expect name, created (a time such as
    /// 2026-11-23T22:00:00Z), source and schema to be text.
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = parse_meta,
          help_heading = "Output")]
    metadata: Vec<(String, String)>,
    /// Build a set of N files, by key hash, with a manifest at the path of --output
    ///
    /// All commands open the set by the path of the manifest, as if it were one file. The files of
    /// the shards are in the same folder; those that did not change since the last build are kept.
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
    quiet: bool,
    /// Print the summary as a JSON object
    #[arg(long, conflicts_with = "quiet", help_heading = "Messages")]
    json: bool,
}

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

fn parse_column(text: &str) -> Result<(String, FieldType), String> {
    let (name, name_of_type) = text.rsplit_once(':').ok_or("expected NAME:TYPE")?;
    let value_type = FieldType::from_str(name_of_type, false).map_err(|_| {
        let types = FieldType::value_variants().iter().map(|value_type| value_type.name());
        format!("expected a type after the colon: {}", types.collect::<Vec<_>>().join(", "))
    })?;
    Ok((name.to_owned(), value_type))
}

impl Build {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        if self.to_stdout() && self.shards.is_some() {
            let problem = "--shards: expected a path for --output, found standard output, which \
                           takes one file";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let inputs = Inputs::new(&self.inputs, self.options())?;
        // A shell may have opened an input as standard output.
        let path = if self.to_stdout() { Path::new("/dev/stdout") } else { &self.output };
        if let Some(input) = inputs.find_same_file(path) {
            let output = path.display();
            let message = format!("{output}: expected another file than the input {input}");
            return Err(Failure::Usage(message));
        }
        let display = Arc::new(Display::new(self.quiet, inputs.total_bytes()));
        let built = self.build(&inputs, &display);
        display.finish();
        let (summary, file) = built.map_err(|error| failure(&inputs, error))?;
        let mut stdout = Stdout::new();
        if let Some(file) = file {
            stdout.write_file(file).map_err(incomplete_output)?;
            stdout.flush().map_err(incomplete_output)?;
        }
        if !self.quiet {
            let report = self.report(&summary, start.elapsed());
            if self.to_stdout() {
                print_error_lines(&report);
            } else {
                print_summary(&report)?;
            }
        }
        Ok(Outcome::Success)
    }

    /// Returns whether the snapshot goes to standard output.
    fn to_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    fn options(&self) -> Options {
        Options {
            format: self.format,
            value_type: self.value_type,
            key: self.key.clone(),
            value: self.value.clone(),
            columns: self.columns.clone(),
            f32_keys: self.f32_keys.clone(),
        }
    }

    /// Builds the snapshot. Returns its file if it has no name.
    fn build(
        &self,
        inputs: &Inputs,
        display: &Arc<Display>,
    ) -> Result<(Summary, Option<File>), nuthatch_import::Error> {
        let threads = self.threads.map_or_else(cores, usize::from);
        let memory = usize::try_from(self.memory).unwrap_or(usize::MAX);
        let readers = reading_threads(threads, memory);
        let progress_display = Arc::clone(display);
        let options = WriterOptions::new()
            .on_duplicate(match self.on_duplicate {
                KeepRow::Error => OnDuplicate::Error,
                KeepRow::First => OnDuplicate::First,
                KeepRow::Last => OnDuplicate::Last,
            })
            .compression(self.compress)
            .memory(memory.saturating_sub(Inputs::memory_bytes(readers)))
            .threads(threads)
            .seed(self.seed)
            .shards(self.shards.unwrap_or(0))
            .progress(move |progress| progress_display.building(progress));
        let mut writer = if self.to_stdout() {
            options.create_unnamed(env::temp_dir())?
        } else {
            options.create(&self.output)?
        };
        for (name, value) in &self.metadata {
            writer.set_metadata(name, value.as_bytes())?;
        }
        inputs.feed(&mut writer, readers, |step| display.reading(step))?;
        if self.to_stdout() {
            let (summary, file) = writer.finish_file()?;
            return Ok((summary, Some(file)));
        }
        Ok((writer.finish()?, None))
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

/// Returns the number of threads that parse inputs. They take at most half of the memory.
fn reading_threads(threads: usize, memory: usize) -> usize {
    threads.min(memory / 2 / Inputs::memory_bytes(1)).max(1)
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

fn failure(inputs: &Inputs, error: nuthatch_import::Error) -> Failure {
    match error {
        nuthatch_import::Error::Snapshot(nuthatch_snapshot::Error::Duplicate(duplicate)) => {
            let (first, second) = (
                inputs.describe_position(duplicate.first),
                inputs.describe_position(duplicate.second),
            );
            let key = quote_key(&duplicate.key);
            Failure::Error(format!(
                "{second}: expected every key once, found {key} again, first given at {first}; \
                 --on-duplicate first or last keeps one"
            ))
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_leaves_half_of_the_memory_to_the_writer() {
        let min = usize::try_from(MIN_MEMORY).expect("a size");
        for memory in [min, 100 << 20, 1 << 30] {
            for threads in [1, 2, 4, 64, 1024] {
                let readers = reading_threads(threads, memory);
                assert!((1..=threads).contains(&readers));
                assert!(Inputs::memory_bytes(readers) <= memory / 2, "{threads} threads, {memory}");
            }
        }
        assert_eq!(reading_threads(8, 1 << 30), 8);
    }
}
