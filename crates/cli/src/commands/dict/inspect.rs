//! `nuthatch dict inspect`: describes a dictionary.

use super::failure;
use super::sample_args::parse_level;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print;
use clap::Args;
use nuthatch_cli::output::json_string;
use nuthatch_compress::{Dictionary, read_dictionary};
use nuthatch_units::{bytes, grouped};
use std::path::PathBuf;

/// Number of bytes at the end of the content that are shown.
const SHOWN_BYTES: usize = 240;
/// Number of bytes on a line.
const LINE_BYTES: usize = 60;

const NOTES: &str = "\
Prints these lines:
  id       the id, and how many bytes each compressed value needs for it
  size     length of the file
  memory   memory of a process that uses the dictionary at the level --level
  text     part of the bytes that are printable ASCII or UTF-8 text; about 0.1 to 0.3 KiB are
           tables of zstd, which are no text
  content  the last 240 bytes: training puts the most useful parts at the end

Examples:
  nuthatch dict inspect users.zdict
  nuthatch dict inspect users.zdict --json | jq .id

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: the file is missing or is not a dictionary of zstd with an id";

/// Show the id, the size and the content of a dictionary
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Inspect {
    /// File of the dictionary
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Level for which the memory is shown
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_level)]
    level: i32,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let content = read_dictionary(&self.file).map_err(|error| failure(&self.file, &error))?;
        let dictionary = Dictionary::new(&content, self.level);
        let dictionary = dictionary.map_err(|error| failure(&self.file, &error))?;
        print(&if self.json { self.json(&dictionary) } else { self.text(&dictionary) })?;
        Ok(Outcome::Success)
    }

    fn text(&self, dictionary: &Dictionary) -> String {
        let (id, content) = (dictionary.id(), dictionary.as_bytes());
        let in_values = match id.get() {
            0..=0x7f => "1 byte",
            0x80..=0x3fff => "2 bytes",
            0x4000..=0x1f_ffff => "3 bytes",
            0x20_0000..=0x0fff_ffff => "4 bytes",
            _ => "5 bytes",
        };
        let len = content.len() as u64;
        let mut text = format!(
            "file     {}\n\
             id       {id}, {in_values} in each value\n\
             size     {} ({} bytes)\n\
             memory   {} at level {}\n\
             text     {:.1} %\n\
             content\n",
            self.file.display(),
            bytes(len),
            grouped(len),
            bytes(dictionary.memory_bytes() as u64),
            self.level,
            text_ratio(content) * 100.0,
        );
        for line in end_of(content).chunks(LINE_BYTES) {
            text.push_str("  ");
            text.push_str(&line.escape_ascii().to_string());
            text.push('\n');
        }
        text
    }

    fn json(&self, dictionary: &Dictionary) -> String {
        let content = dictionary.as_bytes();
        let (mut file, mut end) = (Vec::new(), Vec::new());
        json_string(&self.file.to_string_lossy(), &mut file);
        json_string(&end_of(content).escape_ascii().to_string(), &mut end);
        format!(
            "{{\"file\":{},\"id\":{},\"bytes\":{},\"level\":{},\"memory_bytes\":{},\
             \"text\":{:.4},\"end\":{}}}\n",
            String::from_utf8_lossy(&file),
            dictionary.id(),
            content.len(),
            self.level,
            dictionary.memory_bytes(),
            text_ratio(content),
            String::from_utf8_lossy(&end),
        )
    }
}

fn end_of(content: &[u8]) -> &[u8] {
    &content[content.len().saturating_sub(SHOWN_BYTES)..]
}

/// Returns the part of the bytes that are text, from 0 to 1.
fn text_ratio(content: &[u8]) -> f64 {
    let of_text = content.utf8_chunks().map(|chunk| {
        let text = chunk.valid().chars().filter(|c| !c.is_control() || c.is_whitespace());
        text.map(char::len_utf8).sum::<usize>()
    });
    of_text.sum::<usize>() as f64 / content.len().max(1) as f64
}
