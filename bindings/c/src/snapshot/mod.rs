//! Snapshots for C: one file for each part of the header.

mod decode;
mod types;
mod writer;

pub use types::*;
pub use writer::*;
