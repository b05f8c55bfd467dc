//! Reading ranges of one version of an object, from the cache and from its origin.

mod fetch;
mod file_task;
mod passthrough;
mod plan;
pub(crate) mod range_reader;
pub(crate) mod version;
pub(crate) mod window;

pub(crate) use fetch::found;
