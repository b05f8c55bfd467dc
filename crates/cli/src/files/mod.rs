//! Files that commands read as a whole, and files that they replace as a whole.

mod atomic_file;
mod read;

pub(crate) use atomic_file::WholeFile;
pub(crate) use read::{open_to_all, read_text, warn_if_open};
