//! Inputs: text and tables of several formats become rows for a snapshot.
//!
//! Each input is cut into chunks of whole rows, Parquet into blocks, which threads parse into
//! batches that are handed to the writer in the order of the input: see `chunks.rs` and
//! `pipeline.rs`. Each format has a parser that takes rows from a chunk and gives them to a
//! [`RowSink`]; fuzz targets and tests call the same parsers through [`parse_jsonl`] and its like.
//!
//! Lines are counted from one, and columns are characters of the line, counted from one.

mod chunks;
mod columns;
mod csv;
mod dta;
mod each;
mod error;
mod json;
mod jsonl;
mod open;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "absent_parquet.rs"]
mod parquet;
mod patterns;
mod pipeline;
mod rows;
mod source;
mod tsv;
mod typed;

pub use csv::parse_csv;
pub use dta::parse_dta;
pub use error::{Error, RowError, TextError};
pub use jsonl::parse_jsonl;
pub use open::Format;
pub use options::Options;
pub use patterns::Pattern;
pub use pipeline::{Inputs, Step};
pub use rows::RowSink;
pub use tsv::parse_tsv;
pub use typed::Type;
