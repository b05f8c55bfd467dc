//! Snapshots for C: one file for each part of the header.

mod decode;
mod describe;
mod iterator;
mod lookup;
mod open;
mod scratch;
mod types;
mod value;
mod watch;
mod writer;

pub use describe::*;
pub use iterator::*;
pub use lookup::*;
pub use open::*;
pub use scratch::*;
pub use types::*;
pub use value::*;
pub use watch::*;
pub use writer::*;
