//! Failures of stores, in this process and behind a server.

use crate::failure::Failure;

impl Failure {
    /// Returns the cause of a failed group, for callers that do not group their writes themselves.
    pub(crate) fn ungrouped(error: nuthatch_store::Error) -> Self {
        match error {
            nuthatch_store::Error::Group(cause) => {
                Self::of_engine(cause.code(), cause.to_string(), None)
            }
            error => error.into(),
        }
    }
}

impl From<nuthatch_store::Error> for Failure {
    fn from(error: nuthatch_store::Error) -> Self {
        let write = match &error {
            nuthatch_store::Error::ConditionUnmet { write } => Some(*write as u64),
            _ => None,
        };
        Self::of_engine(error.code(), error.to_string(), write)
    }
}

impl From<nuthatch_rpc::Error> for Failure {
    fn from(error: nuthatch_rpc::Error) -> Self {
        Self::of_engine(error.code().to_owned(), error.message(), error.write())
    }
}
