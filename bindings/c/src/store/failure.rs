//! Errors of the store, in the struct of the header.

use crate::error::{Failure, error_with, number_of, nuthatch_error};
use store_engine::Error;

/// An error of LMDB. Also the code of an error of the store that this crate does not know yet.
const LMDB: i32 = 24;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(Box::new(error_to_c(&error)))
    }
}

/// Converts an error of the store into the struct of the header.
pub(super) fn error_to_c(error: &Error) -> nuthatch_error {
    let (system, position) = match error {
        Error::Io(io) => (io.source.raw_os_error().unwrap_or(0), 0),
        Error::ConditionUnmet { write } => (0, *write as u64),
        _ => (0, 0),
    };
    let code = number_of(error.code()).unwrap_or(LMDB);
    error_with(code, system, position, &error.to_string())
}
