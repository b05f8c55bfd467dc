//! The signature of the manifest that a publisher replaces, and that of its next version.

use crate::destination::Destination;
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::signature::{SigningKey, TrustedKey};

/// The key of a publisher, and the keys that it trusts.
pub(super) struct Signer<'k> {
    pub(super) key: Option<&'k SigningKey>,
    trusted: &'k [TrustedKey],
}

impl<'k> Signer<'k> {
    pub(super) fn new(key: Option<&'k SigningKey>, trusted: &'k [TrustedKey]) -> Self {
        Self { key, trusted }
    }

    /// Returns whether the generations of a manifest may be signed again. Those of one without a
    /// signature may not.
    ///
    /// # Errors
    /// Returns [`Error::SigningKeyMissing`] if the manifest is signed and there is no key, and
    /// [`Error::Signature`] if a key that is not trusted has signed it.
    pub(super) fn check(&self, destination: &Destination, envelope: &Envelope) -> Result<bool> {
        let Some(key) = self.key else {
            if envelope.is_signed() {
                return Err(Error::SigningKeyMissing { manifest: destination.manifest_address() });
            }
            return Ok(true);
        };
        if !envelope.is_signed() {
            return Ok(false);
        }
        let own = key.trusted_key();
        if envelope.is_signed_by(&own) || self.trusted.iter().any(|key| envelope.is_signed_by(key))
        {
            return Ok(true);
        }
        let manifest = destination.manifest_address();
        Err(Error::Signature { manifest, found: "one by another key; --trust-key accepts it" })
    }

    /// Returns whether the manifest has the signature that its next version will have.
    pub(super) fn has_signed(&self, envelope: &Envelope) -> bool {
        match self.key {
            Some(key) => envelope.is_signed_by(&key.trusted_key()),
            None => !envelope.is_signed(),
        }
    }
}
