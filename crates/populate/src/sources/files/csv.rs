//! CSV. An empty value is NULL.

use super::csv_quotes::QuoteCheck;
use super::list::{Compression, SourceFile};
use super::{RowReceiver, Stop, invalid};
use crate::error::Result;
use crate::job::Source;
use csv::{ByteRecord, ReaderBuilder};
use flate2::read::MultiGzDecoder;
use nuthatch_rows::{Cell, CellBuffers, Row};
use nuthatch_snapshot::Value;
use std::io::{BufReader, Read};

const BUFFER_BYTES: usize = 1 << 20;

/// Opens a text file, and decompresses it.
pub(super) fn open_text(file: &SourceFile) -> Result<Box<dyn Read>> {
    let fault = |error| file.fault("read", &error);
    let plain = BufReader::with_capacity(BUFFER_BYTES, file.open()?.reader(0).map_err(fault)?);
    Ok(match file.compression() {
        None => Box::new(plain),
        Some(Compression::Gzip) => Box::new(MultiGzDecoder::new(plain)),
        Some(Compression::Zstd) => {
            Box::new(zstd::stream::read::Decoder::with_buffer(plain).map_err(fault)?)
        }
    })
}

/// Reads a file.
pub(super) fn read(
    source: &Source,
    file: &SourceFile,
    receiver: &mut dyn RowReceiver,
) -> Result<(), Stop> {
    let is_tsv = file.name.to_ascii_lowercase().contains(".tsv");
    let delimiter = if source.delimiter == b',' && is_tsv { b'\t' } else { source.delimiter };
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        // The number of values is checked below, with a message that has the line.
        .flexible(true)
        .delimiter(delimiter)
        .buffer_capacity(BUFFER_BYTES)
        .from_reader(QuoteCheck::new(open_text(file)?, delimiter));
    let fault = |error: csv::Error| match error.kind() {
        csv::ErrorKind::Io(io) => file.fault("read", io),
        _ => invalid(file, error.to_string()),
    };
    let mut record = ByteRecord::new();
    let names = if let Some(names) = &source.header {
        names.clone()
    } else {
        if !reader.read_byte_record(&mut record).map_err(fault)? {
            return Err(invalid(file, "expected a header line, found an empty file").into());
        }
        header(&record).map_err(|message| invalid(file, message))?
    };
    receiver.set_columns(&names)?;
    let mut last_line = 1;
    while reader.read_byte_record(&mut record).map_err(fault)? {
        last_line = record.position().map_or(0, csv::Position::line);
        if record.len() != names.len() {
            let (expected, found) = (names.len(), record.len());
            let message = format!("line {last_line}: expected {expected} values, found {found}");
            return Err(invalid(file, message).into());
        }
        receiver.count_bytes(record.as_slice().len() as u64 + record.len() as u64);
        receiver.row(&CsvRow(&record))?;
    }
    if reader.get_ref().is_in_quotes() {
        let message =
            format!("line {last_line}: expected a closing quote, found the end of the file");
        return Err(invalid(file, message).into());
    }
    Ok(())
}

/// Returns the names of a header line, without a byte order mark.
fn header(record: &ByteRecord) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for (at, name) in record.iter().enumerate() {
        let name = if at == 0 { name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(name) } else { name };
        let name = std::str::from_utf8(name);
        names.push(name.map_err(|_| "line 1: expected names in UTF-8")?.to_owned());
    }
    Ok(names)
}

struct CsvRow<'a>(&'a ByteRecord);

impl Row for CsvRow<'_> {
    fn cell<'r>(
        &'r self,
        column: usize,
        _buffers: &'r mut CellBuffers,
    ) -> Result<Cell<'r>, String> {
        match self.0.get(column) {
            None | Some([]) => Ok(Cell::Null),
            Some(text) => {
                let text = std::str::from_utf8(text);
                let text = text.map_err(|_| "expected text in UTF-8, found other bytes")?;
                Ok(Cell::Value(Value::String(text)))
            }
        }
    }
}
