//! Failures of delivery.

use crate::failure::{Failure, Fields};
use nuthatch_delivery::Error;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Io { path, source, .. } => Self::new("io", message).with_fields(Fields {
                path: Some(path),
                number: source.raw_os_error(),
                ..Fields::default()
            }),
            Error::Address(error) => error.into(),
            Error::Snapshot(error) => Self::from(&error),
            Error::InUse { .. } => Self::new("in-use", message),
            Error::Key { .. } => Self::argument(message),
            Error::SigningKeyMissing { manifest } => Self::new(
                "signature",
                format!(
                    "{manifest}: expected a key to sign the next version of a signed manifest, \
                     found none; set sign_key"
                ),
            ),
            error => Self::new(error.code(), message),
        }
    }
}
