//! Failures of the chunk cache.

use crate::failure::Failure;

impl From<nuthatch_chunks::Error> for Failure {
    fn from(error: nuthatch_chunks::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
