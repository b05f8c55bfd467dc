//! What the fuzz targets share: how a snapshot is read from end to end, how a damaged one gets its
//! checksums right again, how rows are compared that a parser found, what clients do to servers,
//! and what is done with a cache of chunks.

pub mod chunks;
pub mod connections;
mod mend;
mod read;
mod text;

pub use mend::mend;
pub use read::read_all;
pub use text::JsonRows;
