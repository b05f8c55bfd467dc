//! Why a cache with a disk tier cannot be opened.

use std::{fmt, io};

/// Why a [`TieredCache`](crate::TieredCache) cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder of the disk tier cannot be used.
    Disk(nuthatch_tier::Error),
    /// The cache cannot be created.
    Cache(nuthatch_cache::Error),
    /// The system cannot create a thread.
    Thread(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Cache(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "cannot create a thread: {error}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk(error) => Some(error),
            Self::Cache(error) => Some(error),
            Self::Thread(error) => Some(error),
        }
    }
}

impl From<nuthatch_tier::Error> for OpenError {
    fn from(error: nuthatch_tier::Error) -> Self {
        Self::Disk(error)
    }
}

impl From<nuthatch_cache::Error> for OpenError {
    fn from(error: nuthatch_cache::Error) -> Self {
        Self::Cache(error)
    }
}
