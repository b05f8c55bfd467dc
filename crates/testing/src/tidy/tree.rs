//! The files of the repository: tracked files, and untracked files that git does not ignore.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Maximum size of a text file in bytes. Rules do not read larger files, which contain data.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Endings of source files.
const SOURCE_ENDINGS: &[&str] =
    &["rs", "c", "h", "cc", "cpp", "hpp", "go", "java", "py", "sh", "js", "ts"];

/// A file of the repository.
#[derive(Debug)]
pub struct File {
    /// The path relative to the root of the repository.
    pub path: String,
    /// The text of the file. Empty for binary and large files.
    pub text: String,
}

impl File {
    /// Creates a file with this path and text.
    pub fn text(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns the ending of the file name, without the dot.
    pub fn ending(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map_or("", |(_, ending)| ending)
    }

    /// Returns whether the file is source code in any language. This includes shell scripts without
    /// an ending.
    pub fn is_source(&self) -> bool {
        SOURCE_ENDINGS.contains(&self.ending()) || self.text.starts_with("#!/")
    }

    /// Returns the lines with their numbers, counted from one.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// All files of the repository.
#[derive(Debug)]
pub struct Tree {
    files: Vec<File>,
}

impl Tree {
    /// Creates a tree of the given files.
    pub fn new(files: Vec<File>) -> Self {
        Self { files }
    }

    /// Reads the checkout at `root` in the order of paths: the files that git lists as tracked, or
    /// as untracked and not ignored. Deleted files are left out. The text of a file is empty if it
    /// is a symbolic link, is not UTF-8, or has more than 1 MiB.
    ///
    /// # Errors
    ///
    /// The text of the problem if `git` fails, or a file name is no UTF-8 text.
    pub fn of_checkout(root: &Path) -> Result<Self, String> {
        let list = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|e| format!("git ls-files in {}: {e}", root.display()))?;
        if !list.status.success() {
            let why = String::from_utf8_lossy(&list.stderr);
            return Err(format!("git ls-files in {}: {why}", root.display()));
        }
        let paths = String::from_utf8(list.stdout).map_err(|e| format!("a file name: {e}"))?;
        let mut paths: Vec<&str> = paths.split_terminator('\0').collect();
        paths.sort_unstable();
        paths.dedup();
        Ok(Self::new(paths.into_iter().filter_map(|path| read(root, path)).collect()))
    }

    /// Returns all files.
    pub fn files(&self) -> impl Iterator<Item = &File> + Clone {
        self.files.iter()
    }

    /// Returns the files with the ending `ending`.
    pub fn ending(&self, ending: &str) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| file.ending() == ending)
    }

    /// Returns the source files in any language.
    pub fn sources(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_source())
    }

    /// Returns the file at this path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns whether there is a file, or a folder that contains a file, at this path. The root is
    /// the empty path.
    pub fn has(&self, path: &str) -> bool {
        let inside = |file: &File| {
            file.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.is_empty() || self.files.iter().any(inside)
    }
}

fn read(root: &Path, path: &str) -> Option<File> {
    let meta = fs::symlink_metadata(root.join(path)).ok()?;
    let readable = meta.is_file() && meta.len() <= MAX_TEXT_BYTES;
    let bytes = if readable { fs::read(root.join(path)).ok()? } else { Vec::new() };
    Some(File { path: path.to_owned(), text: String::from_utf8(bytes).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_without_an_ending_is_source() {
        assert!(File::text("scripts/test", "#!/usr/bin/env bash\n").is_source());
        assert!(File::text("a/b.go", "").is_source());
        assert!(!File::text("README.md", "# Title\n").is_source());
        assert!(!File::text("some.dir/LICENSE", "Apache").is_source());
    }

    #[test]
    fn a_folder_is_there_when_a_file_is_in_it() {
        let tree = Tree::new(vec![File::text("docs/formats/a.md", "")]);
        assert!(tree.has("docs/formats/a.md") && tree.has("docs/formats") && tree.has(""));
        assert!(!tree.has("docs/form") && !tree.has("src"));
    }
}
