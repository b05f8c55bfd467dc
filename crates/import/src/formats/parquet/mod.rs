//! Apache Parquet: one column has the keys, others have values.
//!
//! | Parquet | value |
//! |---|---|
//! | `BOOLEAN` | bool |
//! | `INT32`, `INT64`, signed or not, also dates and times in their unit | integer |
//! | `FLOAT`, `DOUBLE` | float |
//! | `BYTE_ARRAY` as text (STRING, ENUM, JSON) | string |
//! | other `BYTE_ARRAY`, `FIXED_LEN_BYTE_ARRAY` | bytes |
//! | lists of integers, `FLOAT`, `DOUBLE`, text | lists of i64, f32, f64, strings |
//!
//! Nulls have no value. The key is text, bytes or an integer, which is written in decimal. Errors
//! report the row of the file as the line, and the number of the column as the column.
//!
//! [`schema`] determines the columns to read, [`blocks`] reads them in blocks of rows, and
//! [`cells`] converts the blocks to rows.

mod blocks;
mod cells;
mod schema;

pub(crate) use blocks::{Block, Blocks};
pub(crate) use cells::{Buffers, Parser};

use super::columns::ColumnNames;
use crate::pattern::F32Keys;
use std::fs::File;

/// Opens a file. Returns the parser of its blocks, and the blocks.
pub(crate) fn open(
    file: File,
    names: &ColumnNames,
    f32_keys: F32Keys,
) -> Result<(Parser, Blocks), String> {
    let blocks = Blocks::open(file, names)?;
    Ok((Parser { columns: blocks.columns(), f32_keys }, blocks))
}
