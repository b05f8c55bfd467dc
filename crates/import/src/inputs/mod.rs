//! Inputs as files or standard input: opens them, reads them in chunks, and parses the chunks.

mod batch_sink;
mod chunks;
mod feed;
mod file;
mod for_each;
mod format;
mod list;
mod options;
mod source;

pub use feed::ReadProgress;
pub use format::Format;
pub use list::Inputs;
pub use options::Options;
