//! The files of a source: one, or those whose names match a pattern.

use super::input::Input;
use super::remote::{self, Remote};
use crate::error::{Error, Result};
use crate::interruption::{InterruptibleFile, Interruption};
use crate::job::{Format, Source};
use nuthatch_import::Pattern;
use std::path::{Path, PathBuf};

/// A file of a source.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    /// The path or the address, without secrets.
    pub(super) name: String,
    place: Place,
    interruption: Interruption,
}

#[derive(Clone, Debug)]
enum Place {
    Path(PathBuf),
    Remote(Remote),
}

impl SourceFile {
    /// Opens the file.
    pub(super) fn open(&self) -> Result<Input> {
        match &self.place {
            Place::Path(path) => {
                let fault = |error| self.fault("open", &error);
                let file = InterruptibleFile::open(path, &self.interruption).map_err(fault)?;
                let found = file.metadata().map_err(fault)?;
                if found.is_dir() {
                    return Err(Error::source(&self.name, "expected a file, found a folder"));
                }
                match file.into_regular() {
                    Ok(file) => Ok(Input::Local { file, len: found.len() }),
                    Err(pipe) => Ok(Input::Pipe(pipe)),
                }
            }
            Place::Remote(remote) => Ok(Input::Remote(remote.clone())),
        }
    }

    /// Returns whether the file can be read more than once: it is not a pipe.
    pub(super) fn is_regular(&self) -> bool {
        match &self.place {
            Place::Path(path) => std::fs::metadata(path).is_ok_and(|found| found.is_file()),
            Place::Remote(_) => true,
        }
    }

    /// Returns the error of an operation.
    pub(super) fn fault(&self, operation: &str, error: &std::io::Error) -> Error {
        let message = format!("{operation}: {error}");
        let is_transient = matches!(self.place, Place::Remote(_));
        Error::Source { source: self.name.clone(), message, is_transient }
    }

    /// Returns the format of the file: that of the source, else the one of its name.
    pub(super) fn format(&self, source: &Source) -> Result<Format> {
        if let Some(format) = source.format {
            return Ok(format);
        }
        let name = self.name.to_ascii_lowercase();
        let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        let extension = Path::new(plain).extension().unwrap_or_default().to_string_lossy();
        match &*extension {
            "csv" | "tsv" => Ok(Format::Csv),
            "jsonl" | "ndjson" => Ok(Format::JsonLines),
            "parquet" => Ok(Format::Parquet),
            "arrow" | "ipc" | "feather" => Ok(Format::ArrowIpc),
            _ => Err(Error::source(
                &self.name,
                "expected a name that ends in .csv, .jsonl, .parquet or .arrow, or \"format\"",
            )),
        }
    }

    /// Returns the compression of text files, by their name.
    pub(super) fn compression(&self) -> Option<Compression> {
        let name = self.name.to_ascii_lowercase();
        match name.rsplit('.').next() {
            Some("gz") => Some(Compression::Gzip),
            Some("zst") => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// The compression of a text file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

/// Returns the files of an address, in the order of their names.
pub(super) fn files(
    source: &Source,
    address: &str,
    interruption: &Interruption,
) -> Result<Vec<SourceFile>> {
    let (folder, name) = match address.rsplit_once('/') {
        Some((folder, name)) => (folder, name),
        None => ("", address),
    };
    if folder.contains('*') {
        return Err(Error::source(&source.name(), "expected * only in the last part of the path"));
    }
    let pattern = name.contains('*').then(|| match name.parse::<Pattern>() {
        Ok(pattern) => pattern,
        Err(never) => match never {},
    });
    let found = if address.contains("://") {
        let found = remote::list((folder, name), pattern.as_ref(), interruption)?;
        found.into_iter().map(|(name, remote)| (name, Place::Remote(remote))).collect()
    } else {
        let found = local_paths(source, (address, folder), pattern.as_ref())?;
        let file = |path: PathBuf| (path.display().to_string(), Place::Path(path));
        found.into_iter().map(file).collect::<Vec<_>>()
    };
    let file = |(name, place)| SourceFile { name, place, interruption: interruption.clone() };
    let mut files: Vec<_> = found.into_iter().map(file).collect();
    if files.is_empty() {
        return Err(Error::source(&source.name(), "expected files, found none of this name"));
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn local_paths(
    source: &Source,
    (path, folder): (&str, &str),
    pattern: Option<&Pattern>,
) -> Result<Vec<PathBuf>> {
    let Some(pattern) = pattern else { return Ok(vec![path.into()]) };
    let folder = match (folder, path.starts_with('/')) {
        ("", true) => "/",
        ("", false) => ".",
        (folder, _) => folder,
    };
    let fault =
        |error: std::io::Error| Error::source(&source.name(), format!("list {folder}: {error}"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        if pattern.matches(entry.file_name().as_encoded_bytes()) {
            found.push(entry.path());
        }
    }
    Ok(found)
}
