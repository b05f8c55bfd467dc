//! A file, or a word in its place.

use std::path::PathBuf;

/// A file, or one of several words in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathOrWord {
    /// One of the words of the setting.
    Word(&'static str),
    /// A file. One whose name is a word of the setting is written as `./NAME`.
    Path(PathBuf),
}

impl Default for PathOrWord {
    fn default() -> Self {
        Self::Word("")
    }
}
