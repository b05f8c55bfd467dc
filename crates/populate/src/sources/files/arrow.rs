//! Apache Parquet and Arrow: batches of rows in columns.

use super::input::Input;
use super::list::SourceFile;
use super::{RowReceiver, Stop, invalid};
use crate::error::Result;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use nuthatch_rows::arrow::{BatchRows, column_names};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::io::{BufReader, Read};

/// Number of rows that are decoded at once.
const BATCH_ROWS: usize = 4096;
const BUFFER_BYTES: usize = 1 << 20;
/// The first bytes of a file, which a stream does not have.
const FILE_MAGIC: &[u8] = b"ARROW1";

fn parquet(file: &SourceFile) -> Result<ParquetRecordBatchReaderBuilder<Input>> {
    let opened = ParquetRecordBatchReaderBuilder::try_new(file.open()?);
    opened.map_err(|error| invalid(file, format!("expected a Parquet file: {error}")))
}

/// Returns the number of row groups of a Parquet file.
pub(super) fn row_groups(file: &SourceFile) -> Result<usize> {
    Ok(parquet(file)?.metadata().num_row_groups())
}

/// Returns the number of rows of a Parquet file.
pub(super) fn rows(file: &SourceFile) -> Result<u64> {
    let rows = parquet(file)?.metadata().file_metadata().num_rows();
    Ok(u64::try_from(rows).unwrap_or(0))
}

/// Reads a row group of a Parquet file.
pub(super) fn read_row_group(
    file: &SourceFile,
    row_group: usize,
    receiver: &mut dyn RowReceiver,
) -> Result<(), Stop> {
    let builder = parquet(file)?;
    let size = builder.metadata().row_group(row_group).compressed_size();
    let reader = builder.with_row_groups(vec![row_group]).with_batch_size(BATCH_ROWS).build();
    let reader = reader.map_err(|error| invalid(file, error.to_string()))?;
    let schema = reader.schema();
    receiver.count_bytes(u64::try_from(size).unwrap_or(0));
    read_batches(file, (&schema, reader), receiver)
}

/// Reads a file or a stream of Arrow.
pub(super) fn read_ipc(file: &SourceFile, receiver: &mut dyn RowReceiver) -> Result<(), Stop> {
    let input = file.open()?;
    let fault = |error| file.fault("read", &error);
    let wrong = |error: ArrowError| invalid(file, format!("expected an Arrow file: {error}"));
    let mut magic = [0; FILE_MAGIC.len()];
    // A pipe cannot be read twice; it has a stream.
    let is_file = input.is_seekable()
        && input.reader(0).map_err(fault)?.read_exact(&mut magic).is_ok()
        && magic == *FILE_MAGIC;
    let reader = BufReader::with_capacity(BUFFER_BYTES, input.reader(0).map_err(fault)?);
    if is_file {
        let reader = FileReader::try_new(reader, None).map_err(wrong)?;
        let schema = reader.schema();
        read_batches(file, (&schema, reader), receiver)
    } else {
        let reader = StreamReader::try_new(reader, None).map_err(wrong)?;
        let schema = reader.schema();
        read_batches(file, (&schema, reader), receiver)
    }
}

fn read_batches(
    file: &SourceFile,
    (schema, batches): (&SchemaRef, impl Iterator<Item = Result<RecordBatch, ArrowError>>),
    receiver: &mut dyn RowReceiver,
) -> Result<(), Stop> {
    receiver.set_columns(&column_names(schema))?;
    for batch in batches {
        let batch = batch.map_err(|error| invalid(file, error.to_string()))?;
        for row in BatchRows::new(&batch).iter() {
            receiver.row(&row)?;
        }
    }
    Ok(())
}
