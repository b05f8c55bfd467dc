//! Reads a Parquet file in blocks: a number of rows of all columns that are needed.

use super::schema::{Column, Columns};
use crate::formats::columns::ColumnNames;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::sync::Arc;

/// The approximate length of a block in bytes, unless a single row is longer.
const BLOCK_LEN: u64 = 1 << 20;
/// Maximum number of rows in a block.
const MAX_BLOCK_ROWS: u64 = 8192;

/// A block of rows, and the position of the next row to convert.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) columns: Vec<BlockColumn>,
    /// The number of the next row, counted from one.
    pub(crate) row: u64,
    pub(crate) rows_left: usize,
}

/// A column of a block, and the position of its next row.
#[derive(Debug, Default)]
pub(crate) struct BlockColumn {
    pub(crate) values: Values,
    /// The definition level of each element; empty for columns that cannot have nulls.
    pub(crate) definitions: Vec<i16>,
    /// The repetition level of each element, zero at the start of a list; empty for columns without
    /// lists.
    pub(crate) repetitions: Vec<i16>,
    pub(crate) next_value: usize,
    pub(crate) next_level: usize,
}

/// The values of a column that are not null.
#[derive(Debug, Default)]
pub(crate) enum Values {
    #[default]
    None,
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    FixedBytes(Vec<FixedLenByteArray>),
}

/// A Parquet file that is read.
pub(crate) struct Blocks {
    file: SerializedFileReader<File>,
    columns: Arc<Columns>,
    readers: Vec<ColumnReader>,
    next_group: usize,
    rows_left_in_group: u64,
    rows_per_block: u64,
    /// Bytes of the file for each row of the group, on average.
    row_len: u64,
    next_row: u64,
}

impl Blocks {
    /// Opens a file and checks its columns.
    pub(crate) fn open(file: File, names: &ColumnNames) -> Result<Self, String> {
        let file = SerializedFileReader::new(file).map_err(message)?;
        let schema = file.metadata().file_metadata().schema_descr();
        let columns = Arc::new(Columns::new(names, schema)?);
        Ok(Self {
            file,
            columns,
            readers: Vec::new(),
            next_group: 0,
            rows_left_in_group: 0,
            rows_per_block: 1,
            row_len: 0,
            next_row: 1,
        })
    }

    /// Returns the columns that are read.
    pub(crate) fn columns(&self) -> Arc<Columns> {
        Arc::clone(&self.columns)
    }

    /// Returns the next block, and approximately how many bytes of the file it takes.
    pub(crate) fn next(&mut self) -> Result<Option<(Block, u64)>, String> {
        while self.rows_left_in_group == 0 {
            if self.next_group == self.file.num_row_groups() {
                return Ok(None);
            }
            self.open_group()?;
        }
        let rows = self.rows_per_block.min(self.rows_left_in_group) as usize;
        let mut columns = Vec::with_capacity(self.readers.len());
        for (reader, column) in self.readers.iter_mut().zip(&self.columns.0) {
            columns.push(load(reader, column, rows)?);
        }
        let block = Block { columns, row: self.next_row, rows_left: rows };
        self.next_row += rows as u64;
        self.rows_left_in_group -= rows as u64;
        Ok(Some((block, self.row_len * rows as u64)))
    }

    /// Opens the next group of rows.
    fn open_group(&mut self) -> Result<(), String> {
        let group = self.file.get_row_group(self.next_group).map_err(message)?;
        let metadata = group.metadata();
        let positive = |number: i64| u64::try_from(number).unwrap_or(0);
        let rows = positive(metadata.num_rows());
        let per_row = |bytes: i64| positive(bytes) / rows.max(1);
        self.rows_per_block =
            (BLOCK_LEN / per_row(metadata.total_byte_size()).max(1)).clamp(1, MAX_BLOCK_ROWS);
        self.row_len = per_row(metadata.compressed_size());
        self.rows_left_in_group = rows;
        let reader = |column: &Column| group.get_column_reader(column.leaf).map_err(message);
        self.readers = self.columns.0.iter().map(reader).collect::<Result<_, _>>()?;
        self.next_group += 1;
        Ok(())
    }
}

/// Returns the message of an error, without the name of its kind.
fn message(error: ParquetError) -> String {
    match error {
        ParquetError::General(message) | ParquetError::NYI(message) => message,
        error => error.to_string(),
    }
}

/// Reads a number of rows of a column.
fn load(reader: &mut ColumnReader, column: &Column, rows: usize) -> Result<BlockColumn, String> {
    let mut loaded = BlockColumn::default();
    let read = match reader {
        ColumnReader::BoolColumnReader(r) => read(r, &mut loaded, rows, Values::Bool),
        ColumnReader::Int32ColumnReader(r) => read(r, &mut loaded, rows, Values::Int32),
        ColumnReader::Int64ColumnReader(r) => read(r, &mut loaded, rows, Values::Int64),
        ColumnReader::FloatColumnReader(r) => read(r, &mut loaded, rows, Values::Float),
        ColumnReader::DoubleColumnReader(r) => read(r, &mut loaded, rows, Values::Double),
        ColumnReader::ByteArrayColumnReader(r) => read(r, &mut loaded, rows, Values::Bytes),
        ColumnReader::FixedLenByteArrayColumnReader(r) => {
            read(r, &mut loaded, rows, Values::FixedBytes)
        }
        ColumnReader::Int96ColumnReader(_) => Err("96-bit integers".to_owned()),
    };
    let name = &column.name;
    match read {
        Ok(read) if read == rows => Ok(loaded),
        Ok(read) => Err(format!("column \"{name}\": expected {rows} more rows, found {read}")),
        Err(message) => Err(format!("column \"{name}\": {message}")),
    }
}

/// Reads rows into `loaded`, and returns how many were read.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    loaded: &mut BlockColumn,
    rows: usize,
    values: fn(Vec<T::T>) -> Values,
) -> Result<usize, String> {
    let mut buffer = Vec::new();
    let BlockColumn { definitions, repetitions, .. } = loaded;
    let (rows, ..) = reader
        .read_records(rows, Some(definitions), Some(repetitions), &mut buffer)
        .map_err(message)?;
    loaded.values = values(buffer);
    Ok(rows)
}
