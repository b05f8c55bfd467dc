//! Ed25519 signatures of manifests.

use crate::error::{Error, Result};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use std::fmt;
use std::path::Path;

/// The beginning of an Ed25519 public key in DER (RFC 8410); 32 bytes of the key follow.
const PUBLIC_KEY_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A private key that signs manifests.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Reads an Ed25519 key in PEM (PKCS #8), as `openssl genpkey -algorithm ed25519` writes it.
    ///
    /// # Errors
    /// Returns [`Error::Key`] if the file has no such key, or [`Error::Io`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let pem = std::fs::read(path).map_err(|e| Error::io(path, "read", e))?;
        let pair = PrivatePkcs8KeyDer::from_pem_slice(&pem).ok().and_then(|key| {
            Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der()).ok()
        });
        let expected = "an Ed25519 private key in PEM (openssl genpkey -algorithm ed25519)";
        pair.map(Self).ok_or_else(|| Error::Key { path: path.to_owned(), expected })
    }

    /// Returns the public key of this key.
    pub fn trusted_key(&self) -> TrustedKey {
        TrustedKey(self.0.public_key().as_ref().to_vec())
    }

    /// Returns the signature of a text, in Base64.
    pub(crate) fn sign(&self, text: &str) -> String {
        STANDARD.encode(self.0.sign(text.as_bytes()))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

/// A public key whose signatures are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey(Vec<u8>);

impl TrustedKey {
    /// Reads an Ed25519 key in PEM, as `openssl pkey -in KEY -pubout` writes it.
    ///
    /// # Errors
    /// Returns [`Error::Key`] if the file has no such key, or [`Error::Io`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let pem = std::fs::read(path).map_err(|e| Error::io(path, "read", e))?;
        let key = SubjectPublicKeyInfoDer::from_pem_slice(&pem).ok().and_then(|key| {
            let bytes = key.as_ref().strip_prefix(&PUBLIC_KEY_PREFIX)?;
            (bytes.len() == 32).then(|| Self(bytes.to_vec()))
        });
        let expected = "an Ed25519 public key in PEM (openssl pkey -in KEY -pubout)";
        key.ok_or_else(|| Error::Key { path: path.to_owned(), expected })
    }

    /// Returns whether a signature in Base64 is that of a text by this key.
    pub(crate) fn has_signed(&self, text: &str, signature: &str) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, &self.0);
        let decoded = STANDARD.decode(signature);
        decoded.is_ok_and(|signature| key.verify(text.as_bytes(), &signature).is_ok())
    }
}
