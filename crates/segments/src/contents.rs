//! What a folder has in it, without opening it: opening would make what is missing.

use crate::folder::segment_number;
use crate::layout::{
    CLAIMS_NAME, INDEX_NAME, INDEX_NEW, PINS_NAME, PINS_NEW, SETTINGS_NAME, SETTINGS_NEW,
};
use std::path::Path;

/// What a folder has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Files of segments, of which at least what is whole can be used.
    Segments,
    /// Nothing, or there is no such folder.
    Nothing,
    /// Other files alone.
    Other,
}

impl Contents {
    /// Looks at a folder.
    pub fn of(folder: impl AsRef<Path>) -> Self {
        let Ok(entries) = folder.as_ref().read_dir() else { return Self::Nothing };
        let mut contents = Self::Nothing;
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(is_own) {
                return Self::Segments;
            }
            contents = Self::Other;
        }
        contents
    }
}

/// Whether a file of a folder has the name of one of this crate.
pub(crate) fn is_own(name: &str) -> bool {
    let names =
        [INDEX_NAME, INDEX_NEW, SETTINGS_NAME, SETTINGS_NEW, PINS_NAME, PINS_NEW, CLAIMS_NAME];
    segment_number(name).is_some() || names.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Segments};
    use std::fs;

    #[test]
    fn a_folder_is_known_by_any_of_its_files() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("cache");
        assert_eq!(Contents::of(&folder), Contents::Nothing);
        drop(Segments::open(&folder, &Options::new().limit(64 << 20)).expect("a folder"));
        assert_eq!(Contents::of(&folder), Contents::Segments);
        let names = folder.read_dir().expect("a folder").flatten().map(|entry| entry.file_name());
        let names: Vec<_> = names.collect();
        for name in names.into_iter().chain(["000000000000000a.seg".into()]) {
            let other = tempfile::tempdir().expect("a folder");
            assert_eq!(Contents::of(other.path()), Contents::Nothing);
            fs::write(other.path().join("a.seg"), b"").expect("a file");
            assert_eq!(Contents::of(other.path()), Contents::Other);
            fs::write(other.path().join(&name), b"").expect("a file");
            assert_eq!(Contents::of(other.path()), Contents::Segments, "{}", name.display());
        }
    }
}
