//! Inputs: text and tables of several formats become rows for a snapshot.
//!
//! Each input is cut into chunks of whole rows, Parquet into blocks, which threads parse into
//! batches that are handed to the writer in the order of the input: see `chunks.rs` and
//! `pipeline.rs`. Each format has a parser that takes rows from a chunk and gives them to a
//! [`RowSink`]; fuzz targets and tests call the same parsers through [`parse_jsonl`] and its like.
//!
//! Lines are counted from one, and columns are characters of the line, counted from one.

#[path = "inputs/chunks.rs"]
mod chunks;
#[path = "formats/columns.rs"]
mod columns;
#[path = "formats/csv.rs"]
mod csv;
#[path = "formats/dta.rs"]
mod dta;
#[path = "inputs/for_each.rs"]
mod each;
mod error;
#[path = "json/scanner.rs"]
mod json;
#[path = "formats/jsonl.rs"]
mod jsonl;
#[path = "inputs/file.rs"]
mod open;
#[path = "inputs/options.rs"]
mod options;
#[cfg(feature = "parquet")]
#[path = "formats/parquet/mod.rs"]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "formats/parquet_disabled.rs"]
mod parquet;
#[path = "pattern.rs"]
mod patterns;
#[path = "inputs/feed.rs"]
mod pipeline;
#[path = "text/cursor.rs"]
mod rows;
#[path = "inputs/source.rs"]
mod source;
#[path = "formats/tsv.rs"]
mod tsv;
#[path = "field_type.rs"]
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
