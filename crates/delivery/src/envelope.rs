//! The file of a manifest: a line with the manifest, and a line with its signature if it has one.

use crate::error::{Error, Result};
use crate::manifest::Manifest;
use crate::signature::{SigningKey, TrustedKey};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Signature {
    ed25519: String,
}

/// A manifest and its signature.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    pub(crate) manifest: Manifest,
    /// The line that is signed.
    line: String,
    signature: Option<String>,
}

impl Envelope {
    pub(crate) fn is_signed(&self) -> bool {
        self.signature.is_some()
    }

    /// Returns whether a key has signed the manifest.
    pub(crate) fn is_signed_by(&self, key: &TrustedKey) -> bool {
        self.signature.as_ref().is_some_and(|signature| key.has_signed(&self.line, signature))
    }
}

/// Encodes a manifest, with a signature if there is a key.
pub(crate) fn encode(manifest: &Manifest, key: Option<&SigningKey>) -> String {
    let mut text = manifest.encode();
    let signature = key.map(|key| Signature { ed25519: key.sign(&text) });
    text.push('\n');
    if let Some(signature) = signature {
        text.push_str(&serde_json::to_string(&signature).expect("a text"));
        text.push('\n');
    }
    text
}

/// Decodes a manifest. If there are trusted keys, one of them must have signed it; nothing else of
/// it is parsed before that is known.
pub(crate) fn decode(bytes: &[u8], place: &str, trusted: &[TrustedKey]) -> Result<Envelope> {
    let unexpected = |expected: &str, found: &str| Error::Manifest {
        manifest: place.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    };
    let text = std::str::from_utf8(bytes).map_err(|_| unexpected("UTF-8", "other bytes"))?;
    let (line, rest) = text
        .split_once('\n')
        .ok_or_else(|| unexpected("a complete line", "the end of the manifest"))?;
    let signature = match rest {
        "" => None,
        rest => {
            let line = rest.strip_suffix('\n').unwrap_or_default();
            let signature = serde_json::from_str::<Signature>(line);
            Some(signature.map_err(|_| unexpected("a signature in line 2", "another text"))?)
        }
    };
    if !trusted.is_empty() {
        let refused = |found| Error::Signature { manifest: place.to_owned(), found };
        let signature = signature.as_ref().ok_or_else(|| refused("none"))?;
        if !trusted.iter().any(|key| key.has_signed(line, &signature.ed25519)) {
            return Err(refused("one by another key"));
        }
    }
    let manifest = Manifest::decode(line, place)?;
    let signature = signature.map(|signature| signature.ed25519);
    Ok(Envelope { manifest, line: line.to_owned(), signature })
}
