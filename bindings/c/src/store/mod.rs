//! The ordered store for C: one file for each part of the header.

mod failure;
mod open;
mod read;
mod scan;
mod types;
mod upkeep;
mod watch;
mod write;
mod writer;

pub use open::*;
pub use read::*;
pub use scan::*;
pub use types::*;
pub use upkeep::*;
pub use watch::*;
pub use write::*;
pub use writer::*;
