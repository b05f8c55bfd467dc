//! The outcome of a command, and its failure.

/// The outcome of a command that did not fail.
pub(crate) enum Outcome {
    /// Everything was done.
    Success,
    /// Everything was done, but keys or objects do not exist, or a condition does not hold.
    NotFound,
    /// Everything was done, and damage was found that the origin can replace.
    Damaged,
    /// Everything was done, and errors were printed.
    Failed,
}

/// The failure of a command.
pub(crate) enum Failure {
    /// The arguments contradict each other or the inputs.
    Usage(String),
    /// Any other error.
    Error(String),
    /// The reader of the output closed it.
    ClosedPipe,
}

impl Failure {
    /// Returns the message for users.
    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Usage(message) | Self::Error(message) => message,
            Self::ClosedPipe => "the reader of the output closed it".to_owned(),
        }
    }
}

impl From<nuthatch_snapshot::Error> for Failure {
    fn from(error: nuthatch_snapshot::Error) -> Self {
        Self::Error(error.to_string())
    }
}

impl From<nuthatch_store::Error> for Failure {
    fn from(error: nuthatch_store::Error) -> Self {
        Self::Error(error.to_string())
    }
}

impl From<nuthatch_tier::Error> for Failure {
    fn from(error: nuthatch_tier::Error) -> Self {
        Self::Error(error.to_string())
    }
}

#[cfg(feature = "chunks")]
impl From<nuthatch_chunks::Error> for Failure {
    fn from(error: nuthatch_chunks::Error) -> Self {
        Self::Error(error.to_string())
    }
}

#[cfg(feature = "chunks")]
impl From<nuthatch_origins::Error> for Failure {
    fn from(error: nuthatch_origins::Error) -> Self {
        Self::Error(error.to_string())
    }
}

#[cfg(feature = "delivery")]
impl From<nuthatch_delivery::Error> for Failure {
    fn from(error: nuthatch_delivery::Error) -> Self {
        Self::Error(error.to_string())
    }
}

impl From<nuthatch_import::Error> for Failure {
    fn from(error: nuthatch_import::Error) -> Self {
        match error {
            nuthatch_import::Error::Usage(message) => Self::Usage(message),
            error => Self::Error(error.to_string()),
        }
    }
}

impl From<nuthatch_compress::Error> for Failure {
    fn from(error: nuthatch_compress::Error) -> Self {
        Self::Error(error.to_string())
    }
}

impl From<nuthatch_rpc::Error> for Failure {
    fn from(error: nuthatch_rpc::Error) -> Self {
        match error.code() {
            "argument" => Self::Usage(error.to_string()),
            _ => Self::Error(error.to_string()),
        }
    }
}
