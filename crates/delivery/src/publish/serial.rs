//! The serial number of the manifest that a publisher expects.

use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::manifest::Manifest;

/// Checks that the manifest of a destination still has a serial number; 0 is for a destination
/// that has none.
///
/// # Errors
/// Returns [`Error::Conflict`] if it has another one, and [`Error::Store`] or [`Error::Manifest`]
/// if it cannot be read.
pub async fn check_serial(destination: &Destination, expected: u64) -> Result<()> {
    let read = destination.manifest(&[]).await?;
    check(destination, expected, read.as_ref().map(|read| &read.envelope.manifest))
}

/// Fails if a manifest that was read has another serial number.
pub(super) fn check(
    destination: &Destination,
    expected: u64,
    manifest: Option<&Manifest>,
) -> Result<()> {
    if manifest.map_or(0, |manifest| manifest.serial) == expected {
        return Ok(());
    }
    Err(Error::Conflict { manifest: destination.manifest_address() })
}
