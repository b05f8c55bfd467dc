//! Files on disk and in object stores: CSV, JSON lines, Parquet and Arrow.
//!
//! A source can be several files. They are read by several threads, and Parquet files by their row
//! groups.

mod arrow;
mod csv;
mod csv_quotes;
mod input;
mod jsonl;
mod list;
mod remote;

use super::parts::read_parts;
use super::{Dialect, MakeReceiver, RowReceiver, Session, Stop};
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::{Format, Source};
use list::SourceFile;
use std::collections::VecDeque;

/// The files of a source.
pub(super) struct FileSession {
    files: Vec<SourceFile>,
    was_read: bool,
}

/// A part of a source, which one thread reads.
struct Part<'a> {
    file: &'a SourceFile,
    format: Format,
    /// The row group, for Parquet.
    row_group: Option<usize>,
}

impl FileSession {
    /// Finds the files of an address.
    pub(super) fn open(
        source: &Source,
        address: &str,
        interruption: &Interruption,
    ) -> Result<Self> {
        let files = list::files(source, address, interruption)?;
        let session = Self { files, was_read: false };
        for file in &session.files {
            file.format(source)?;
        }
        Ok(session)
    }

    /// Returns the parts of the source, in order.
    fn parts(&self, source: &Source) -> Result<VecDeque<Part<'_>>> {
        let mut parts = VecDeque::new();
        for file in &self.files {
            let format = file.format(source)?;
            if format == Format::Parquet {
                let count = arrow::row_groups(file)?;
                let groups = (0..count).map(Some);
                parts.extend(groups.map(|row_group| Part { file, format, row_group }));
            } else {
                parts.push_back(Part { file, format, row_group: None });
            }
        }
        Ok(parts)
    }
}

impl Session for FileSession {
    fn estimated_rows(&mut self, source: &Source) -> Option<u64> {
        let is_parquet = |file: &SourceFile| matches!(file.format(source), Ok(Format::Parquet));
        if !self.files.iter().all(is_parquet) {
            return None;
        }
        self.files.iter().map(|file| arrow::rows(file).ok()).sum()
    }

    fn read(
        &mut self,
        source: &Source,
        _query: Option<&str>,
        make_receiver: &MakeReceiver<'_>,
    ) -> Result<(), Stop> {
        if self.was_read
            && let Some(pipe) = self.files.iter().find(|file| !file.is_regular())
        {
            let message = "a pipe cannot be read again, as the gate \"sample\" does";
            return Err(invalid(pipe, message).into());
        }
        self.was_read = true;
        let parts = self.parts(source)?;
        read_parts(parts, source.readers, make_receiver, |part, (): &mut (), receiver| {
            read_part(source, part, receiver)
        })
    }

    fn dialect(&self) -> Option<Dialect> {
        None
    }
}

fn read_part(source: &Source, part: &Part<'_>, receiver: &mut dyn RowReceiver) -> Result<(), Stop> {
    let file = part.file;
    match part.row_group {
        Some(row_group) => {
            receiver.begin_file(&format!("{}: row group {}", file.name, row_group + 1));
        }
        None => receiver.begin_file(&file.name),
    }
    match (part.format, part.row_group) {
        (Format::Parquet, Some(row_group)) => arrow::read_row_group(file, row_group, receiver),
        (Format::Parquet, None) => Ok(()),
        (Format::ArrowIpc, _) => arrow::read_ipc(file, receiver),
        (Format::Csv, _) => csv::read(source, file, receiver),
        (Format::JsonLines, _) => jsonl::read(source, file, receiver),
    }
}

/// Returns the error for the contents of a file.
fn invalid(file: &SourceFile, message: impl Into<String>) -> Error {
    Error::source(&file.name, message)
}
