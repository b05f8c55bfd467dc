//! What a folder contains, without opening it: opening would create missing files.

use super::names::is_own;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;

/// What a folder contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Files of this crate. Valid ones can be used.
    Segments,
    /// No entries, or the folder does not exist.
    Nothing,
    /// Only other files.
    Other,
}

impl Contents {
    /// Lists a folder and returns what it contains.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the folder exists but cannot be listed. Only a folder
    /// that does not exist counts as [`Contents::Nothing`].
    pub fn of(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let fail = |error| Error::io("list the folder", folder, error);
        let entries = match folder.read_dir() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Nothing),
            listed => listed.map_err(fail)?,
        };
        let mut contents = Self::Nothing;
        for entry in entries {
            if entry.map_err(fail)?.file_name().to_str().is_some_and(is_own) {
                return Ok(Self::Segments);
            }
            contents = Self::Other;
        }
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Segments};
    use std::fs;

    fn contents(folder: impl AsRef<Path>) -> Contents {
        Contents::of(folder).expect("a folder that can be listed")
    }

    #[test]
    fn any_file_of_this_crate_identifies_a_folder() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("cache");
        assert_eq!(contents(&folder), Contents::Nothing);
        drop(Segments::open(&folder, &Options::new().limit(64 << 20)).expect("a folder"));
        assert_eq!(contents(&folder), Contents::Segments);
        let names = folder.read_dir().expect("a folder").flatten().map(|entry| entry.file_name());
        let names: Vec<_> = names.collect();
        for name in names.into_iter().chain(["000000000000000a.seg".into()]) {
            let other = tempfile::tempdir().expect("a folder");
            assert_eq!(contents(other.path()), Contents::Nothing);
            fs::write(other.path().join("a.seg"), b"").expect("a file");
            assert_eq!(contents(other.path()), Contents::Other);
            fs::write(other.path().join(&name), b"").expect("a file");
            assert_eq!(contents(other.path()), Contents::Segments, "{}", name.display());
        }
    }
}
