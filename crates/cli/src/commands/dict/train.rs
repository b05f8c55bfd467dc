//! `nuthatch dict train`: trains a dictionary from samples.

use super::sample_args::{SampleArgs, parse_level};
use super::times_smaller;
use crate::files::AtomicFile;
use crate::outcome::{Failure, Outcome};
use crate::terminal::{Display, print_message, print_summary};
use clap::Args;
use nuthatch_cli::output::json_string;
use nuthatch_compress::{MAX_DICTIONARY_BYTES, MIN_DICTIONARY_BYTES, Trained, train};
use nuthatch_units::{bytes, duration, grouped, parse_size};
use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Below this part, the cache server does not adopt a dictionary.
const MIN_SAVED: f64 = 0.1;

const NOTES: &str = "\
Every fourth sample is held out: it does not train the dictionary, and measures what the dictionary
saves compared with zstd without one. Sizes include the headers of values. Values longer than 64 KiB
are never compressed with a dictionary and are skipped. The same samples yield the same dictionary.

A dictionary is useful from about 100 times its size in samples. It has at most a quarter of the
size of the samples. Documents of a JSON array are lines after: jq -c '.[]' FILE

Examples:
  nuthatch dict train --from users.jsonl --out users.zdict
  nuthatch dict train --from documents/ --out docs.zdict --max-bytes 64KiB
  nuthatch dict train --from users.csv --key id --value profile --out users.zdict
  redis-cli --scan --pattern 'user:*' | xargs -r -n 1 redis-cli get |
    nuthatch dict train --from - --out users.zdict

Exit status:
  0  the dictionary is written
  2  invalid command line
  3  any other error, for example: an input is missing, there are too few samples, the file cannot
     be written. An existing file is unchanged, unless the error reports that the new file was
     published";

/// Train a dictionary from samples
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Train {
    /// File of the dictionary
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Level at which the dictionary is measured
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_level)]
    level: i32,
    /// Maximum size of the dictionary
    #[arg(long, value_name = "SIZE", default_value = "32KiB", value_parser = parse_max_bytes)]
    max_bytes: usize,
    /// Id of the dictionary, from 1 to 4294967295 [default: from 1024 to 16383, by its content]
    ///
    /// Each compressed value contains it: ids up to 127 need one byte, ids up to 16383 two.
    #[arg(long, value_name = "ID")]
    id: Option<NonZeroU32>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Print neither progress nor a summary
    #[arg(short, long)]
    quiet: bool,
    // The last one, because its heading is that of all options below it.
    #[command(flatten)]
    samples: SampleArgs,
}

fn parse_max_bytes(text: &str) -> Result<usize, String> {
    let limits = MIN_DICTIONARY_BYTES..=MAX_DICTIONARY_BYTES;
    let size = usize::try_from(parse_size(text)?).ok().filter(|size| limits.contains(size));
    size.ok_or_else(|| "expected a size from 256 bytes to 16MiB".to_owned())
}

impl Train {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let display = Display::new(self.quiet, None);
        let trained = self.train(&display);
        display.finish();
        let (trained, counts) = trained?;
        self.write(&trained)
            .map_err(|error| Failure::Error(format!("{}: write: {error}", self.out.display())))?;
        if !self.quiet {
            let text = if self.json {
                self.json(&trained, &counts, start.elapsed())
            } else {
                self.text(&trained, &counts, start.elapsed())
            };
            print_summary(&text)?;
            let saved = trained.held_out.saved();
            if saved < MIN_SAVED {
                let saved = saved * 100.0;
                print_message(format_args!(
                    "the dictionary saves {saved:.1} %; it is hardly worthwhile below 10 %"
                ));
            }
        }
        Ok(Outcome::Success)
    }

    fn train(&self, display: &Display) -> Result<(Trained, Counts), Failure> {
        let mut samples = self.samples.read(Some(&self.out), display)?;
        let chosen = samples.take();
        let (read, too_long) = (samples.read, samples.too_long);
        let counts = Counts { read, too_long, chosen: chosen.len() as u64 };
        display.stage("training", 0, 0);
        let trained = train(chosen, self.max_bytes, self.level, self.id);
        let trained = trained.map_err(|error| match error {
            nuthatch_compress::Error::Training { .. } => {
                Failure::Error(format!("{error}; give more samples, or more similar ones"))
            }
            error => error.into(),
        })?;
        Ok((trained, counts))
    }

    fn write(&self, trained: &Trained) -> std::io::Result<()> {
        let mut file = AtomicFile::create(self.out.clone())?;
        file.write_all(&trained.bytes)?;
        file.publish()
    }

    fn text(&self, trained: &Trained, counts: &Counts, time: Duration) -> String {
        let Counts { read, too_long, chosen } = *counts;
        let sizes = &trained.held_out;
        let too_long = match too_long {
            0 => String::new(),
            too_long => format!(", {} longer than 64 KiB skipped", grouped(too_long)),
        };
        let not_used = match read - counts.too_long - chosen {
            0 => String::new(),
            not_used => format!(", {} beyond --max-samples", grouped(not_used)),
        };
        let form = |len: u64| {
            let times = times_smaller(sizes.raw_bytes, len);
            let each = len as f64 / (sizes.values as f64).max(1.0);
            format!("{each:.1} bytes per value, {times:.2} times smaller")
        };
        format!(
            "file        {}\n\
             dictionary  id {}, {} ({} bytes)\n\
             samples     {} read{too_long}{not_used}; {} for training, {} held out\n\
             raw         {:.1} bytes per value\n\
             zstd -{:<6}{}\n\
             dictionary  {}\n\
             saved       {:.1} % compared with zstd -{}\n\
             time        {}\n",
            self.out.display(),
            trained.id,
            bytes(trained.bytes.len() as u64),
            grouped(trained.bytes.len() as u64),
            grouped(read),
            grouped(trained.training_samples),
            grouped(sizes.values),
            sizes.raw_bytes as f64 / (sizes.values as f64).max(1.0),
            self.level,
            form(sizes.plain_bytes),
            form(sizes.dictionary_bytes),
            sizes.saved() * 100.0,
            self.level,
            duration(time),
        )
    }

    fn json(&self, trained: &Trained, counts: &Counts, time: Duration) -> String {
        let mut file = Vec::new();
        json_string(&self.out.to_string_lossy(), &mut file);
        let sizes = &trained.held_out;
        format!(
            "{{\"file\":{},\"id\":{},\"bytes\":{},\"level\":{},\"read\":{},\"too_long\":{},\
             \"training_samples\":{},\"held_out\":{{\"values\":{},\"raw_bytes\":{},\
             \"plain_bytes\":{},\"dictionary_bytes\":{}}},\"saved\":{:.4},\"seconds\":{:.3}}}\n",
            String::from_utf8_lossy(&file),
            trained.id,
            trained.bytes.len(),
            self.level,
            counts.read,
            counts.too_long,
            trained.training_samples,
            sizes.values,
            sizes.raw_bytes,
            sizes.plain_bytes,
            sizes.dictionary_bytes,
            sizes.saved(),
            time.as_secs_f64(),
        )
    }
}

/// Counts of values: read, too long for a dictionary, and chosen as samples.
struct Counts {
    read: u64,
    too_long: u64,
    chosen: u64,
}
