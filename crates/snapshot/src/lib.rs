//! Immutable typed key-value files, mapped by any number of processes.

mod bucket;
mod cast;
mod compression;
mod directory;
mod error;
mod hash;
mod header;
pub mod layout;
mod many;
mod map;
mod reader;
mod record;
mod stored;
mod string_list;
mod value;
mod writer;

pub use compression::{Compression, Scratch};
pub use error::{Damage, Duplicate, Error, IoError, Limit, Result};
pub use map::Residency;
pub use reader::{OpenOptions, Snapshot};
pub use stored::Stored;
pub use string_list::{StringList, StringListBuf};
pub use value::{Value, ValueType};
pub use writer::{Batch, OnDuplicate, Progress, Stage, Summary, Writer, WriterOptions};
