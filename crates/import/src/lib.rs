//! Readers of JSON lines, JSON documents, TSV, CSV, Apache Parquet, and text and files of
//! AxonCache. They pass rows to the writer of snapshots, or to any [`RowSink`].
//!
//! [`Inputs`] reads files and standard input, plain or compressed. [`Inputs::feed`] parses them on
//! several threads and appends the rows to a [`Writer`](nuthatch_snapshot::Writer), in order;
//! [`Inputs::for_each`] adds them to a sink on the calling thread. [`parse_jsonl`], [`parse_tsv`],
//! [`parse_csv`] and [`parse_dta`] parse text in memory.
//!
//! ```
//! use nuthatch_import::{RowSink, parse_jsonl};
//! use nuthatch_snapshot::{Error, Value};
//!
//! #[derive(Default)]
//! struct Keys(Vec<Vec<u8>>);
//!
//! impl RowSink for Keys {
//!     fn row(&mut self, _line: u64, key: &[u8], _value: Value<'_>) -> Result<(), Error> {
//!         self.0.push(key.to_vec());
//!         Ok(())
//!     }
//! }
//!
//! let mut keys = Keys::default();
//! parse_jsonl(b"{\"key\": \"user:1\", \"value\": 36}\n", &mut keys)?;
//! assert_eq!(keys.0, [b"user:1"]);
//! # Ok::<(), nuthatch_import::RowError>(())
//! ```
//!
//! Errors report the line and the character in it, both counted from one; [`TextError`] lists the
//! exceptions. The folders import in one direction, down this list:
//!
//! | folder or file | content |
//! |---|---|
//! | `inputs/` | files and standard input, read in chunks; threads that parse the chunks |
//! | `convert.rs` | single values from text |
//! | `formats/` | the parsers, one for each format |
//! | `field_type.rs` | the types of values in formats without types |
//! | `json/` | a scanner of JSON values, which all text formats use for lists |
//! | `text/` | the position of a parser in a text |
//! | `sink.rs`, `pattern.rs` | the receiver of rows, patterns of keys |
//! | `fault.rs`, `error.rs` | errors, by offset and by line |

mod convert;
mod error;
mod fault;
mod field_type;
mod formats;
mod inputs;
mod json;
mod pattern;
mod sink;
mod text;

pub use convert::Converter;
pub use error::{Error, RowError, TextError};
pub use field_type::FieldType;
pub use formats::csv::parse_csv;
pub use formats::dta::parse_dta;
pub use formats::jsonl::parse_jsonl;
pub use formats::tsv::parse_tsv;
pub use inputs::{Format, Inputs, Options, ReadProgress};
pub use pattern::Pattern;
pub use sink::RowSink;
