//! Apache Parquet: one column is the key, others are values.
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
//! Nulls are left out. The key is text, bytes or an integer, which is written in decimal. In
//! errors the rows of the file count as lines, its columns as columns.
//!
//! [`schema`] tells what the columns are, [`blocks`] reads some rows of them at a time, and
//! [`cells`] takes those apart.

mod blocks;
mod cells;
mod schema;

pub(crate) use blocks::{Block, Blocks};
pub(crate) use cells::{Parser, Rooms};

use super::columns::Choice;
use super::patterns::Singles;
use std::fs::File;

/// Opens a file: what takes its blocks apart, and its blocks.
pub(crate) fn open(
    file: File,
    choice: &Choice,
    singles: Singles,
) -> Result<(Parser, Blocks), String> {
    let blocks = Blocks::open(file, choice)?;
    Ok((Parser { columns: blocks.columns(), singles }, blocks))
}
