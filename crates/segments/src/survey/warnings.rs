//! Problems of a folder that do not prevent its use.

use crate::error::Error;
use crate::folder::folder_mode;
use crate::segments::Segments;
use std::fmt;
use std::path::PathBuf;

/// A problem of a folder that can still be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// This process can only read the folder: nothing is stored.
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// Other users can access the folder. It existed before, and keeps its mode.
    Mode {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        found: u32,
        /// The mode of a new folder.
        expected: u32,
    },
    /// The folder is on a network filesystem. Only processes of one machine may use it at a time.
    Network {
        /// The folder.
        path: PathBuf,
        /// The filesystem, such as `nfs`.
        filesystem: &'static str,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly { path, reason } => {
                let effect = "this process can only read the folder, and stores nothing";
                write!(f, "{}: {effect}: {reason}", path.display())
            }
            Self::Mode { path, found, expected } => write!(
                f,
                "{}: other users may use this folder: expected mode {expected:04o}, found \
                 {found:04o}; change it with chmod, or share it with a group",
                path.display()
            ),
            Self::Network { path, filesystem } => write!(
                f,
                "{}: on a network filesystem ({filesystem}): expected a local one; use it from one \
                 machine at a time",
                path.display()
            ),
        }
    }
}

impl Segments {
    /// Returns the current problems of the folder, each as a message for a log or for the user.
    pub fn warnings(&self) -> Vec<Warning> {
        let path = || self.path().to_owned();
        let mut warnings = Vec::new();
        if let Err(Error::ReadOnly { path, source }) = self.check_writable() {
            warnings.push(Warning::ReadOnly { path, reason: source.to_string() });
        }
        let shared = self.index().and_then(crate::index::Index::settings);
        let expected = folder_mode(shared.is_some_and(|settings| settings.shared));
        // The set-group-ID bit gives no user access.
        if let Some(found) = self.folder.mode().filter(|found| found & 0o777 & !expected != 0) {
            warnings.push(Warning::Mode { path: path(), found, expected });
        }
        if let Ok(Some(filesystem)) = self.options.disk.network_filesystem(self.path()) {
            warnings.push(Warning::Network { path: path(), filesystem });
        }
        warnings
    }
}
