//! Files that commands read as a whole, and files that they replace as a whole.

mod atomic_file;
mod read;

pub(crate) use atomic_file::AtomicFile;
pub(crate) use read::{read_secret, read_text, warn_if_world_readable, world_readable_warning};
