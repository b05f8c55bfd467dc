//! The formats of inputs, and how names of files determine them.

use std::path::Path;

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Format {
    /// JSON lines: `{"key": …, "value": …}`.
    Jsonl,
    /// A JSON document: an array of such objects, or an object of keys and values.
    Json,
    /// Lines `key<TAB>value`.
    Tsv,
    /// Values separated by commas, or by another delimiter, with a header line by default.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// AxonCache text: records `key=value` that end with the byte 0x1E.
    Dta,
    /// A file of AxonCache with linear probing.
    Axoncache,
}

impl Format {
    /// Returns the format for the extension of a file, and its compression.
    pub(crate) fn of(path: &Path) -> (Option<Self>, Compression) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let (name, compression) = match name.rsplit_once('.') {
            Some((name, "gz")) => (name, Compression::Gzip),
            Some((name, "zst")) => (name, Compression::Zstd),
            _ => (&name[..], Compression::None),
        };
        let format = match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("jsonl" | "ndjson") => Some(Self::Jsonl),
            Some("json") => Some(Self::Json),
            Some("tsv") => Some(Self::Tsv),
            Some("csv") => Some(Self::Csv),
            Some("parquet") => Some(Self::Parquet),
            Some("dta") => Some(Self::Dta),
            Some("cache") => Some(Self::Axoncache),
            _ => None,
        };
        (format, compression)
    }

    /// Returns the name of the format for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "JSON lines",
            Self::Json => "JSON",
            Self::Tsv => "TSV",
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::Dta => "AxonCache text",
            Self::Axoncache => "AxonCache",
        }
    }
}

/// The compression of a whole input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_determine_formats() {
        for (name, format, compression) in [
            ("a.jsonl", Some(Format::Jsonl), Compression::None),
            ("a.b/c.NDJSON.gz", Some(Format::Jsonl), Compression::Gzip),
            ("a.json.zst", Some(Format::Json), Compression::Zstd),
            ("a.tsv", Some(Format::Tsv), Compression::None),
            ("a.csv.old", None, Compression::None),
            ("jsonl", None, Compression::None),
            ("a.dta", Some(Format::Dta), Compression::None),
            ("a.1700000000000.cache", Some(Format::Axoncache), Compression::None),
            ("-", None, Compression::None),
        ] {
            assert_eq!(Format::of(Path::new(name)), (format, compression), "{name}");
        }
    }
}
