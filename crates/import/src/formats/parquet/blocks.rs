//! Reads a Parquet file block by block: some rows of all columns asked for.

use super::schema::{Column, Columns};
use crate::columns::Choice;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::sync::Arc;

/// Blocks are about this long, unless a single row is longer.
const BLOCK_LEN: u64 = 1 << 20;
const BLOCK_ROWS: u64 = 8192;

/// Some rows, and how far they are taken apart.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) columns: Vec<Loaded>,
    /// The number of the next row, counted from one.
    pub(crate) row: u64,
    pub(crate) rows_left: usize,
}

/// A column of a block: which rows have which values.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) values: Values,
    /// How much of each element is there; empty for columns that cannot lack any.
    pub(crate) definitions: Vec<i16>,
    /// Zero where a list begins; empty for columns without lists.
    pub(crate) repetitions: Vec<i16>,
    pub(crate) next_value: usize,
    pub(crate) next_level: usize,
}

/// The values that are not null.
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

/// A Parquet file being read.
pub(crate) struct Blocks {
    file: SerializedFileReader<File>,
    columns: Arc<Columns>,
    readers: Vec<ColumnReader>,
    next_group: usize,
    rows_left_in_group: u64,
    rows_each: u64,
    /// Bytes of the file for each row of the group.
    row_len: u64,
    next_row: u64,
}

impl Blocks {
    pub(crate) fn open(file: File, choice: &Choice) -> Result<Self, String> {
        let file = SerializedFileReader::new(file).map_err(told)?;
        let schema = file.metadata().file_metadata().schema_descr();
        let columns = Arc::new(Columns::new(choice, schema)?);
        Ok(Self {
            file,
            columns,
            readers: Vec::new(),
            next_group: 0,
            rows_left_in_group: 0,
            rows_each: 1,
            row_len: 0,
            next_row: 1,
        })
    }

    pub(crate) fn columns(&self) -> Arc<Columns> {
        Arc::clone(&self.columns)
    }

    /// The next block and about how many bytes of the file it takes.
    pub(crate) fn next(&mut self) -> Result<Option<(Block, u64)>, String> {
        while self.rows_left_in_group == 0 {
            if self.next_group == self.file.num_row_groups() {
                return Ok(None);
            }
            self.open_group()?;
        }
        let rows = self.rows_each.min(self.rows_left_in_group) as usize;
        let mut columns = Vec::with_capacity(self.readers.len());
        for (reader, column) in self.readers.iter_mut().zip(&self.columns.0) {
            columns.push(load(reader, column, rows)?);
        }
        let block = Block { columns, row: self.next_row, rows_left: rows };
        self.next_row += rows as u64;
        self.rows_left_in_group -= rows as u64;
        Ok(Some((block, self.row_len * rows as u64)))
    }

    fn open_group(&mut self) -> Result<(), String> {
        let group = self.file.get_row_group(self.next_group).map_err(told)?;
        let metadata = group.metadata();
        let positive = |number: i64| u64::try_from(number).unwrap_or(0);
        let rows = positive(metadata.num_rows());
        let of_each_row = |bytes: i64| positive(bytes) / rows.max(1);
        self.rows_each =
            (BLOCK_LEN / of_each_row(metadata.total_byte_size()).max(1)).clamp(1, BLOCK_ROWS);
        self.row_len = of_each_row(metadata.compressed_size());
        self.rows_left_in_group = rows;
        let reader = |column: &Column| group.get_column_reader(column.leaf).map_err(told);
        self.readers = self.columns.0.iter().map(reader).collect::<Result<_, _>>()?;
        self.next_group += 1;
        Ok(())
    }
}

fn told(error: ParquetError) -> String {
    match error {
        ParquetError::General(message) | ParquetError::NYI(message) => message,
        error => error.to_string(),
    }
}

fn load(reader: &mut ColumnReader, column: &Column, rows: usize) -> Result<Loaded, String> {
    let mut loaded = Loaded::default();
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

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    loaded: &mut Loaded,
    rows: usize,
    values: fn(Vec<T::T>) -> Values,
) -> Result<usize, String> {
    let mut room = Vec::new();
    let Loaded { definitions, repetitions, .. } = loaded;
    let (rows, ..) =
        reader.read_records(rows, Some(definitions), Some(repetitions), &mut room).map_err(told)?;
    loaded.values = values(room);
    Ok(rows)
}
