//! The process of a command or server: signals, panics, the service manager, and the memory and
//! files it may use.

mod memory;
mod open_files;
mod service;
mod signals;

pub(crate) use memory::{MemoryLimit, check_memory, default_memory};
pub(crate) use open_files::{limit_connections, max_connections, raise_file_limit, spare_files};
pub(crate) use service::start_watchdog;
pub(crate) use signals::{Request, ServerProcess, end_at_once};
