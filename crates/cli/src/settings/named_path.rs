//! Paths with names, in the notation of settings: `NAME=PATH`.

use std::fmt;
use std::path::{Path, PathBuf};

/// A path with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl NamedPath {
    /// Parses `NAME=PATH`. A relative path is relative to `folder`.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found.
    pub(crate) fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), path: folder.join(path) })
            }
            _ => Err(format!("expected NAME=PATH such as users=/srv/users.nut, found {text:?}")),
        }
    }
}

impl fmt::Display for NamedPath {
    /// Writes the notation, with an absolute path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        write!(f, "{}={}", self.name, path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_ends_the_name() {
        let folder = Path::new("/etc");
        for (text, shown) in [("a=/x.nut", "a=/x.nut"), ("a=b=c", "a=/etc/b=c")] {
            assert_eq!(NamedPath::parse(text, folder).expect(text).to_string(), shown);
        }
        for text in ["", "a", "=x", "a="] {
            assert!(NamedPath::parse(text, folder).is_err(), "{text}");
        }
    }
}
