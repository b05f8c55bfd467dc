//! Immutable typed key-value files, mapped by any number of processes.

mod bucket;
mod cast;
mod compression;
mod directory;
mod error;
mod hash;
mod header;
mod iter;
pub mod layout;
mod many;
mod map;
mod parallel;
mod reader;
mod record;
mod stats;
mod stored;
mod string_list;
mod value;
mod verify;
mod watch;
mod writer;

pub use compression::{Compression, Scratch};
pub use error::{Damage, Duplicate, Error, IoError, Limit, Result};
pub use iter::{Entry, Iter};
pub use map::Residency;
pub use reader::{OpenOptions, Snapshot};
pub use stats::Stats;
pub use stored::Stored;
pub use string_list::{StringList, StringListBuf};
pub use value::{Value, ValueType};
pub use watch::{Event, Generations, Watch, WatchOptions, WatchReader, WatchStatus};
pub use writer::{Batch, OnDuplicate, Progress, Stage, Summary, Writer, WriterOptions};
