//! What the `nuthatch` command reads and writes, as a library, so that tests and fuzz targets can
//! call it on bytes. The command itself is the binary of this package.

pub mod input;
pub mod output;
