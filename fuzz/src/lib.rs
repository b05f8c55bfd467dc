//! Shared parts of the fuzz targets: reading a whole snapshot, correcting the checksums of a
//! damaged snapshot, comparing parsed rows, and executing scripts on servers and on a chunk cache.

pub mod chunks;
pub mod connections;
mod mend;
mod read;
mod text;

pub use mend::{mend, mend_manifest};
pub use read::read_all;
pub use text::JsonRows;
