//! The arguments of commands that read samples.

use super::sample_reader::{Samples, is_same_file, read_files, read_lines, read_rows};
use crate::outcome::Failure;
use crate::terminal::Display;
use clap::{Args, ValueEnum};
use nuthatch_compress::Reservoir;
use nuthatch_import::{Format, Options};
use nuthatch_units::parse_size;
use std::path::{Path, PathBuf};

/// The seed of the choice of samples: the same inputs yield the same dictionary.
const SEED: u64 = 1;

/// Where samples are, and what a sample is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Samples")]
pub(super) struct SampleArgs {
    /// File or folder with samples; - is standard input. Can be repeated
    #[arg(long = "from", value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// What a sample is [default: files for a folder, rows for .csv, .tsv, .json and .parquet,
    /// otherwise lines]
    #[arg(long, value_enum)]
    format: Option<SampleFormat>,
    /// Column or field with the keys, for rows; required for CSV and Parquet
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column or field with the values, for rows [default: each column is a sample]
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// Maximum size of all samples; of more, a random part is used
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_max_samples)]
    max_samples: usize,
}

/// The format of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SampleFormat {
    /// Each line that is not empty is a sample, such as a JSON document
    Lines,
    /// Each file is a sample; folders are read with all that is in them
    Files,
    /// Values of JSON lines {"key": ..., "value": ...}
    Jsonl,
    /// Values of a JSON document
    Json,
    /// Values of lines of a key, a tab and a value
    Tsv,
    /// Values of CSV, with a header line
    Csv,
    /// Values of Apache Parquet
    Parquet,
}

impl SampleFormat {
    /// Returns the default for a path.
    fn of(path: &Path) -> Self {
        if path.is_dir() {
            return Self::Files;
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Self::Json,
            Some("tsv") => Self::Tsv,
            Some("csv") => Self::Csv,
            Some("parquet") => Self::Parquet,
            _ => Self::Lines,
        }
    }

    /// Returns the format of rows. `None` for lines and files.
    fn rows(self) -> Option<Format> {
        match self {
            Self::Lines | Self::Files => None,
            Self::Jsonl => Some(Format::Jsonl),
            Self::Json => Some(Format::Json),
            Self::Tsv => Some(Format::Tsv),
            Self::Csv => Some(Format::Csv),
            Self::Parquet => Some(Format::Parquet),
        }
    }
}

impl SampleArgs {
    /// Reads the samples. Fails if an input is the file `output`.
    pub(super) fn read(
        &self,
        output: Option<&Path>,
        display: &Display,
    ) -> Result<Samples, Failure> {
        self.check(output)?;
        let mut samples = Samples::new(Reservoir::new(self.max_samples, SEED));
        for path in &self.paths {
            let format = self.format.unwrap_or_else(|| SampleFormat::of(path));
            let mut report = |count| display.stage("reading", count, 0);
            match format.rows() {
                Some(format) => {
                    let (key, value) = (self.key.clone(), self.value.clone());
                    let options =
                        Options { format: Some(format), key, value, ..Options::default() };
                    read_rows(path, options, &mut samples, &mut report)?;
                }
                None if format == SampleFormat::Files => {
                    read_files(path, output, &mut samples, &mut report)?;
                }
                None => read_lines(path, &mut samples, &mut report)?,
            }
        }
        Ok(samples)
    }

    fn check(&self, output: Option<&Path>) -> Result<(), Failure> {
        for path in &self.paths {
            let format = self.format.unwrap_or_else(|| SampleFormat::of(path));
            let name = path.display();
            if format.rows().is_none() && (self.key.is_some() || self.value.is_some()) {
                let expected = "--key and --value need rows: --format jsonl, json, tsv, csv or";
                let problem = format!("{name}: {expected} parquet, found lines or files");
                return Err(Failure::Usage(problem));
            }
            if format == SampleFormat::Files && path.as_os_str() == "-" {
                let problem = "--format files needs files and folders, found standard input";
                return Err(Failure::Usage(problem.to_owned()));
            }
            let compressed = ["gz", "zst"]
                .into_iter()
                .find(|end| path.extension().is_some_and(|found| found == *end));
            if let Some(end) = compressed.filter(|_| format == SampleFormat::Lines) {
                let reader = if end == "gz" { "zcat" } else { "zstdcat" };
                let advice = format!("use {reader} {name} and --from -");
                let problem = format!("{name}: expected plain lines, found .{end}; {advice}");
                return Err(Failure::Usage(problem));
            }
            if output.is_some_and(|output| is_same_file(output, path)) {
                let problem = format!("{name}: expected another file for --out than the samples");
                return Err(Failure::Usage(problem));
            }
        }
        Ok(())
    }
}

/// Parses the maximum size of the samples: 4 KiB to 1 GiB. zstd cannot train from more.
fn parse_max_samples(text: &str) -> Result<usize, String> {
    let size = parse_size(text)?;
    let size = usize::try_from(size).ok().filter(|size| (4 << 10..=1 << 30).contains(size));
    size.ok_or_else(|| "expected a size from 4KiB to 1GiB".to_owned())
}

/// Parses a level of zstd.
pub(super) fn parse_level(text: &str) -> Result<i32, String> {
    let level = text.parse().ok().filter(|level| (1..=22).contains(level));
    level.ok_or_else(|| "expected a level from 1 to 22".to_owned())
}
