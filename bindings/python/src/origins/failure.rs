//! Failures of remote objects.

use crate::failure::Failure;

impl From<nuthatch_origins::Error> for Failure {
    fn from(error: nuthatch_origins::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
