//! The parsers, one for each format. A parser adds the rows of a text or of a block to a
//! [`RowSink`](crate::RowSink) and pauses when the sink is full.

pub(crate) mod axoncache;
pub(crate) mod columns;
pub(crate) mod csv;
pub(crate) mod dta;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod jsonl;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "parquet_disabled.rs"]
pub(crate) mod parquet;
pub(crate) mod tsv;
