//! The files in which the kernel describes the machine.

use std::fs;
use std::path::PathBuf;

/// A machine, seen through `/proc` and `/sys`.
#[derive(Debug)]
pub(super) struct Machine {
    /// The folder that contains `proc` and `sys`: `/`, except in tests.
    root: PathBuf,
}

impl Machine {
    /// Returns the machine of this process.
    pub(super) fn this() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// Reads a file such as `proc/swaps`, without white space at its end. Returns `None` if it
    /// cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// Reads a file that contains one number.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// Returns the names of the files in a folder; none if it cannot be read.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let files = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        files.filter_map(|file| file.file_name().into_string().ok()).collect()
    }

    /// Returns the target of a symbolic link. Returns `None` if it cannot be read.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        fs::read_link(self.root.join(path)).ok()?.into_os_string().into_string().ok()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Machine;
    use std::fs;
    use tempfile::TempDir;

    /// Returns a machine with these files. The folder must live as long.
    pub(crate) fn with(files: &[(&str, &str)]) -> (TempDir, Machine) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let root = folder.path().to_owned();
        (folder, Machine { root })
    }
}
