//! The arguments for keys of signatures.

use crate::outcome::Failure;
use clap::Args;
use nuthatch_delivery::{SigningKey, TrustedKey};
use std::path::PathBuf;

/// The key that signs manifests.
#[derive(Debug, Args)]
pub(super) struct SigningKeyArg {
    /// Sign the manifest with this Ed25519 private key (PEM, PKCS #8)
    ///
    /// Once a manifest is signed, each later version needs a signature, too.
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
}

impl SigningKeyArg {
    /// Reads the key, if there is one.
    pub(super) fn read(&self) -> Result<Option<SigningKey>, Failure> {
        Ok(self.sign_key.as_deref().map(SigningKey::read).transpose()?)
    }
}

/// The keys whose signatures are trusted.
#[derive(Debug, Args)]
pub(super) struct TrustedKeyArgs {
    /// Require a signature by this Ed25519 public key (PEM); can be repeated: one of them must have
    /// signed
    #[arg(long, value_name = "FILE")]
    trust_key: Vec<PathBuf>,
}

impl TrustedKeyArgs {
    /// Reads the keys.
    pub(super) fn read(&self) -> Result<Vec<TrustedKey>, Failure> {
        read_trusted(&self.trust_key)
    }
}

/// Reads public keys.
pub(super) fn read_trusted(paths: &[PathBuf]) -> Result<Vec<TrustedKey>, Failure> {
    Ok(paths.iter().map(|path| TrustedKey::read(path)).collect::<Result<_, _>>()?)
}
