//! Arguments of commands that read rows: the format of the inputs, and where keys and values are.

use clap::Args;
use nuthatch_import::{FieldType, Format, Options};

/// The format of the inputs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// Format of all inputs [default: from the extension of each file]
    ///
    /// Extensions: .jsonl and .ndjson for JSON lines, .json for a JSON document, .tsv, .csv,
    /// .parquet, .dta for AxonCache text and .cache for AxonCache files. All but Parquet and .cache
    /// can be followed by .gz or .zst for compressed files. The default for standard input is JSON
    /// lines.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Type of values in TSV, CSV and AxonCache text [default: string]
    ///
    /// Lists are written as JSON.
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    value_type: Option<FieldType>,
    /// Column with the keys, required for CSV and Parquet; field with the keys, for JSON objects of
    /// any shape
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column or field with the values
    ///
    /// The key of a row is then KEY. By default, all columns besides the key have values, and the
    /// key of each value is KEY.COLUMN.
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// Separator of the fields of CSV: one ASCII character, or the word tab [default: ,]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// Names of the columns, separated by commas, of CSV without a header line
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    header: Vec<String>,
}

impl InputArgs {
    /// Returns the options for reading.
    pub(crate) fn options(&self) -> Options {
        Options {
            format: self.format,
            value_type: self.value_type,
            key: self.key.clone(),
            value: self.value.clone(),
            delimiter: self.delimiter,
            header: (!self.header.is_empty()).then(|| self.header.clone()),
            ..Options::default()
        }
    }
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => {
            Err("expected tab, or one ASCII character other than a quote or a line end".to_owned())
        }
    }
}
