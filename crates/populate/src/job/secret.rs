//! Passwords from the environment and from files.

use crate::error::{Error, Result};
use crate::interruption::{InterruptibleFile, Interruption};
use std::path::PathBuf;

/// The place of a password. Passwords are read when a connection is opened, so that a changed
/// password is used at the next run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// A file. White space at its end does not count.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
}

impl Secret {
    /// Reads the password.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Job`] if the file cannot be read, or the variable is not set.
    pub(crate) fn read(&self, interruption: &Interruption) -> Result<String> {
        match self {
            Self::File(path) => {
                let text = InterruptibleFile::read_text(path, interruption).map_err(|error| {
                    Error::Job(format!("password_file: {}: {error}", path.display()))
                })?;
                Ok(text.trim_end().to_owned())
            }
            Self::Variable(name) => std::env::var(name).map_err(|_| {
                Error::Job(format!("password_env: the variable {name} is not set to text"))
            }),
        }
    }
}
