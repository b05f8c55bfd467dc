//! `nuthatch dict try`: size and speed of samples, with a dictionary and without one.

use super::measure::{Measured, measure};
use super::sample_args::{SampleArgs, parse_level};
use super::{failure, times_smaller};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{Display, print_result};
use clap::Args;
use nuthatch_cli::output::json_string;
use nuthatch_compress::read_dictionary;
use nuthatch_units::grouped;
use std::fmt::Write;
use std::path::PathBuf;

const NOTES: &str = "\
Compresses each sample by itself at each level, plain and with the dictionary, and decompresses it.
Sizes include the headers of values; a value that does not become at least 1/16 smaller counts as
raw. Times are those of one thread, per value, in the fastest of at least three rounds. Use samples
that did not train the dictionary, since it compresses those better than other values.

Examples:
  nuthatch dict try users.zdict --from new-users.jsonl
  nuthatch dict try users.zdict --from documents/ --level 1,3,9,19
  nuthatch dict try users.zdict --from - --json < values.jsonl | jq '.levels[0].dictionary'

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: a file is missing or is not a dictionary, there are no samples";

/// Compare size and speed of samples with a dictionary and without one
#[derive(Debug, Args)]
#[command(name = "try", after_long_help = NOTES)]
pub(super) struct TrySamples {
    /// File of the dictionary
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Levels of zstd, separated by commas
    #[arg(long = "level", value_name = "N,...", default_value = "1,3,9", value_delimiter = ',',
          value_parser = parse_level)]
    levels: Vec<i32>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    // The last one, because its heading is that of all options below it.
    #[command(flatten)]
    samples: SampleArgs,
}

/// The results at one level.
struct AtLevel {
    level: i32,
    plain: Measured,
    dictionary: Measured,
}

/// The results at all levels.
struct Results {
    values: u64,
    raw_bytes: u64,
    levels: Vec<AtLevel>,
}

impl TrySamples {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let display = Display::new(self.quiet, None);
        let results = self.measure(&display);
        display.finish();
        let results = results?;
        print_result(&if self.json { self.json(&results) } else { text(&results) })?;
        Ok(Outcome::Success)
    }

    fn measure(&self, display: &Display) -> Result<Results, Failure> {
        let failed = |error| failure(&self.file, &error);
        let dictionary = read_dictionary(&self.file).map_err(failed)?;
        // Checked before the samples are read, which can take long.
        nuthatch_compress::Dictionary::new(&dictionary, self.levels[0]).map_err(failed)?;
        let samples = self.samples.read(None, display)?.take();
        if samples.is_empty() {
            let problem = "expected samples of 1 byte to 64 KiB, found none";
            return Err(Failure::Error(problem.to_owned()));
        }
        let mut levels = Vec::new();
        for (at, &level) in self.levels.iter().enumerate() {
            display.stage("measuring", at as u64, self.levels.len() as u64);
            let plain = measure(&samples, level, None)?;
            let dictionary = measure(&samples, level, Some(&dictionary)).map_err(failed)?;
            levels.push(AtLevel { level, plain, dictionary });
        }
        let raw_bytes = samples.iter().map(|sample| sample.len() as u64).sum();
        Ok(Results { values: samples.len() as u64, raw_bytes, levels })
    }

    fn json(&self, results: &Results) -> String {
        let Results { values, raw_bytes, levels } = results;
        let mut file = Vec::new();
        json_string(&self.file.to_string_lossy(), &mut file);
        let object = |measured: &Measured| {
            let Measured { bytes, raw_values, compress_ns, decompress_ns } = measured;
            format!(
                "{{\"bytes\":{bytes},\"raw_values\":{raw_values},\"compress_ns\":{compress_ns:.0},\
                 \"decompress_ns\":{decompress_ns:.0}}}"
            )
        };
        let levels = levels.iter().map(|AtLevel { level, plain, dictionary }| {
            let (plain, dictionary) = (object(plain), object(dictionary));
            format!("{{\"level\":{level},\"plain\":{plain},\"dictionary\":{dictionary}}}")
        });
        format!(
            "{{\"file\":{},\"values\":{values},\"raw_bytes\":{raw_bytes},\"levels\":[{}]}}\n",
            String::from_utf8_lossy(&file),
            levels.collect::<Vec<_>>().join(","),
        )
    }
}

fn text(results: &Results) -> String {
    let Results { values, raw_bytes, ref levels } = *results;
    let each = |bytes: u64| bytes as f64 / values.max(1) as f64;
    let mut text = format!(
        "{} values, {:.1} bytes per value\n\n\
         level  with        bytes per value  smaller  stored raw    compress  decompress\n",
        grouped(values),
        each(raw_bytes),
    );
    for AtLevel { level, plain, dictionary } in levels {
        for (name, measured) in [("zstd", plain), ("dictionary", dictionary)] {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{level:5}  {name:10}  {:15.1}  {:6.2}x  {:>10}  {:7.2} us  {:7.2} us",
                each(measured.bytes),
                times_smaller(raw_bytes, measured.bytes),
                grouped(measured.raw_values),
                measured.compress_ns / 1000.0,
                measured.decompress_ns / 1000.0,
            );
        }
    }
    text
}
