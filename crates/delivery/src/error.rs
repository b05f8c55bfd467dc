//! Errors of this crate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    Io {
        /// The operation, such as `write`.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A request to a destination failed. The reason contains no credentials.
    Store {
        /// The operation, such as `read`.
        operation: &'static str,
        /// The address of the object.
        object: String,
        /// Why it failed.
        reason: String,
    },
    /// The destination does not have an object that its manifest names. The publisher may have
    /// removed the generation meanwhile.
    ObjectNotFound {
        /// The address of the object.
        object: String,
    },
    /// The address of a destination is invalid, or its settings are.
    Address(nuthatch_origins::Error),
    /// The destination has no manifest.
    NothingPublished {
        /// The address of the destination.
        destination: String,
    },
    /// The manifest of a destination contradicts the format.
    Manifest {
        /// The address of the manifest.
        manifest: String,
        /// What the format requires.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The manifest has no signature by a trusted key.
    Signature {
        /// The address of the manifest.
        manifest: String,
        /// What was found instead.
        found: &'static str,
    },
    /// The manifest is signed, and no key to sign its next version was given.
    SigningKeyMissing {
        /// The address of the manifest.
        manifest: String,
    },
    /// Another publisher replaced the manifest meanwhile. Nothing was published.
    Conflict {
        /// The address of the manifest.
        manifest: String,
    },
    /// The destination has no generation with this number.
    GenerationNotFound {
        /// The address of the destination.
        destination: String,
        /// The number.
        generation: u64,
        /// The numbers that it has.
        available: Vec<u64>,
    },
    /// The manifest is older than one that the follower has seen before.
    OlderManifest {
        /// The address of the manifest.
        manifest: String,
        /// The lowest serial number that is accepted.
        expected: u64,
        /// The serial number of the manifest.
        found: u64,
    },
    /// Another follower uses the folder.
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// A file has no valid key.
    Key {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
    },
    /// A file or an object has other bytes than expected.
    Contents {
        /// The file or the address of the object.
        place: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The snapshot cannot be opened or verified.
    Snapshot(nuthatch_snapshot::Error),
}

impl Error {
    /// All [codes](Self::code).
    pub const CODES: [&str; 9] = [
        "conflict",
        "contents",
        "io",
        "manifest",
        "nothing-published",
        "older-manifest",
        "signature",
        "snapshot",
        "store",
    ];

    /// Returns a short name of the cause, for metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::InUse { .. } => "io",
            Self::Store { .. } | Self::ObjectNotFound { .. } | Self::Address(_) => "store",
            Self::NothingPublished { .. } | Self::GenerationNotFound { .. } => "nothing-published",
            Self::Manifest { .. } => "manifest",
            Self::Signature { .. } | Self::SigningKeyMissing { .. } | Self::Key { .. } => {
                "signature"
            }
            Self::Conflict { .. } => "conflict",
            Self::OlderManifest { .. } => "older-manifest",
            Self::Contents { .. } => "contents",
            Self::Snapshot(_) => "snapshot",
        }
    }

    /// Returns whether the disk, or the quota of the user, is full.
    pub(crate) fn is_full_disk(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Io { source, .. } if full.contains(&source.kind()))
    }

    pub(crate) fn io(path: &Path, operation: &'static str, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, source } => {
                write!(f, "{}: {operation}: {source}", path.display())
            }
            Self::Store { operation, object, reason } => {
                write!(f, "{object}: {operation}: {reason}")
            }
            Self::ObjectNotFound { object } => {
                write!(f, "{object}: read: the object does not exist")
            }
            Self::Address(error) => error.fmt(f),
            Self::NothingPublished { destination } => {
                write!(f, "{destination}: expected generations, found none; publish one first")
            }
            Self::Manifest { manifest, expected, found } => {
                write!(f, "{manifest}: expected {expected}, found {found}")
            }
            Self::Signature { manifest, found } => {
                write!(f, "{manifest}: expected a signature by a trusted key, found {found}")
            }
            Self::SigningKeyMissing { manifest } => write!(
                f,
                "{manifest}: expected a key to sign the next version of a signed manifest, found \
                 none; set --sign-key"
            ),
            Self::Conflict { manifest } => write!(
                f,
                "{manifest}: another publisher replaced the manifest meanwhile; nothing was \
                 changed. Look at its generations, then publish again"
            ),
            Self::GenerationNotFound { destination, generation, available } => {
                let list: Vec<_> = available.iter().map(u64::to_string).collect();
                let list = list.join(", ");
                write!(f, "{destination}: there is no generation {generation}; there are: {list}")
            }
            Self::OlderManifest { manifest, expected, found } => write!(
                f,
                "{manifest}: expected serial {expected} or later, which was seen before, found \
                 {found}: the store returned an old manifest, or the destination was created \
                 again; then remove the folder of the follower"
            ),
            Self::InUse { folder } => write!(
                f,
                "{}: expected a folder that no other follower uses, found one that is locked",
                folder.display()
            ),
            Self::Key { path, expected } => {
                write!(f, "{}: expected {expected}, found other contents", path.display())
            }
            Self::Contents { place, expected, found } => {
                write!(f, "{place}: expected {expected}, found {found}")
            }
            Self::Snapshot(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Address(error) => Some(error),
            Self::Snapshot(error) => Some(error),
            _ => None,
        }
    }
}

impl From<nuthatch_snapshot::Error> for Error {
    fn from(error: nuthatch_snapshot::Error) -> Self {
        Self::Snapshot(error)
    }
}

impl From<nuthatch_origins::Error> for Error {
    fn from(error: nuthatch_origins::Error) -> Self {
        Self::Address(error)
    }
}
