//! Opens inputs: files and standard input, plain or compressed.

use super::error::Error;
use clap::ValueEnum;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON lines: `{"key": …, "value": …}`.
    Jsonl,
    /// `key<TAB>value`.
    Tsv,
    /// Comma-separated values with a header.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// AxonCache's text.
    Dta,
}

impl Format {
    /// The format that a file's name tells, and the name's ending of compression, if any.
    pub(crate) fn of(path: &Path) -> (Option<Self>, Packing) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let (name, packing) = match name.rsplit_once('.') {
            Some((name, "gz")) => (name, Packing::Gzip),
            Some((name, "zst")) => (name, Packing::Zstd),
            _ => (&name[..], Packing::None),
        };
        let format = match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("jsonl" | "ndjson" | "json") => Some(Self::Jsonl),
            Some("tsv") => Some(Self::Tsv),
            Some("csv") => Some(Self::Csv),
            Some("parquet") => Some(Self::Parquet),
            Some("dta") => Some(Self::Dta),
            _ => None,
        };
        (format, packing)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "JSON lines",
            Self::Tsv => "TSV",
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::Dta => "AxonCache text",
        }
    }
}

/// How an input is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    None,
    Gzip,
    Zstd,
}

/// Where an input is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    path: PathBuf,
    /// What messages call it.
    pub(crate) name: String,
    pub(crate) packing: Packing,
}

impl Place {
    pub(crate) fn new(path: &Path) -> Self {
        let stdin = path.as_os_str() == "-";
        let name = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
        Self { path: path.to_owned(), name, packing: Format::of(path).1 }
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// The length in bytes, where it is known before reading. Fails when there is no such file.
    pub(crate) fn len(&self) -> Result<Option<u64>, Error> {
        if self.is_stdin() {
            return Ok(None);
        }
        let metadata = self.path.metadata().map_err(|e| Error::io(&self.name, "open", e))?;
        if metadata.is_dir() {
            return Err(Error::io(&self.name, "open", ErrorKind::IsADirectory.into()));
        }
        Ok(metadata.is_file().then_some(metadata.len()))
    }

    /// Returns whether this is the file with this device and inode.
    pub(crate) fn is_file(&self, device: u64, inode: u64) -> bool {
        let metadata = if self.is_stdin() {
            io::stdin().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata())
        } else {
            self.path.metadata()
        };
        metadata.is_ok_and(|found| found.is_file() && (found.dev(), found.ino()) == (device, inode))
    }

    pub(crate) fn file(&self) -> Result<File, Error> {
        File::open(&self.path).map_err(|e| Error::io(&self.name, "open", e))
    }

    /// The bytes, unpacked. `read` counts them as they come from the system.
    pub(crate) fn bytes(&self, read: &Arc<AtomicU64>) -> Result<Box<dyn Read + Send>, Error> {
        let read = Arc::clone(read);
        if self.is_stdin() {
            return Ok(Box::new(Counted { reader: io::stdin(), read }));
        }
        let file = Counted { reader: self.file()?, read };
        Ok(match self.packing {
            Packing::None => Box::new(file),
            Packing::Gzip => {
                let buffered = io::BufReader::with_capacity(1 << 16, file);
                Box::new(flate2::bufread::MultiGzDecoder::new(buffered))
            }
            Packing::Zstd => Box::new(
                zstd::stream::read::Decoder::new(file)
                    .map_err(|e| Error::io(&self.name, "decompress", e))?,
            ),
        })
    }
}

/// Counts bytes as they are read.
struct Counted<R> {
    reader: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.reader.read(bytes)?;
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        for (name, format, packing) in [
            ("a.jsonl", Some(Format::Jsonl), Packing::None),
            ("a.b/c.NDJSON.gz", Some(Format::Jsonl), Packing::Gzip),
            ("a.json.zst", Some(Format::Jsonl), Packing::Zstd),
            ("a.tsv", Some(Format::Tsv), Packing::None),
            ("a.csv.old", None, Packing::None),
            ("jsonl", None, Packing::None),
            ("a.dta", Some(Format::Dta), Packing::None),
            ("-", None, Packing::None),
        ] {
            assert_eq!(Format::of(Path::new(name)), (format, packing), "{name}");
        }
    }
}
