//! Why a transfer has ended early.

use crate::cluster::connection::CallError;

/// Why a transfer has ended without all items at the target.
pub(super) enum Stopped {
    /// It is not wanted any more.
    Cancelled,
    /// It has failed for this reason.
    Failed(String),
}

impl From<CallError> for Stopped {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Io(error) => Self::Failed(error.to_string()),
            CallError::Refused(text) => Self::Failed(text),
            CallError::Cancelled => Self::Cancelled,
            CallError::TooLong => Self::Failed("the reply is too long".to_owned()),
        }
    }
}
