//! The process of a command or server: signals, panics, and the memory and files it may use.

mod memory;
mod open_files;
mod signals;

pub(crate) use memory::{MemoryLimit, check_memory, default_memory};
pub(crate) use open_files::{limit_connections, max_connections, raise_file_limit, spare_files};
pub(crate) use signals::{Request, ServerProcess, end_at_once};
