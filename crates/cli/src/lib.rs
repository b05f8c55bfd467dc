//! The output of the `nuthatch` command, as a library that tests and fuzz targets can call. The
//! command itself is the binary of this package.

pub use nuthatch_value_text as output;
