//! The output of `chunks get`: a file that is replaced atomically, or standard output.

use crate::files::AtomicFile;
use crate::outcome::Failure;
use crate::terminal::Stdout;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Maximum number of bytes that are checked before a terminal shows them.
const SNIFF_LEN: usize = 4096;

pub(super) enum Output {
    Stdout {
        out: Stdout,
        /// Set before the first write to a terminal, which must be text.
        checks_text: bool,
    },
    /// A device or a pipe, which is written in place.
    Device(PathBuf, File),
    File(PathBuf, AtomicFile),
}

impl Output {
    /// Opens the output: a file, or standard output without a path or with `-`.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| !is_stdout(path)) else {
            let out = Stdout::new();
            let checks_text = path.is_none() && out.is_terminal();
            return Ok(Self::Stdout { out, checks_text });
        };
        // The target of a symbolic link is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&target) {
            Ok(found) if found.is_dir() => {
                let found = "expected the name of a file, found a folder";
                Err(Failure::Usage(format!("{}: {found}", path.display())))
            }
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(&target);
                let file = file.map_err(|error| failure(path, &error))?;
                Ok(Self::Device(target, file))
            }
            _ => {
                let file = AtomicFile::create(target).map_err(|error| failure(path, &error))?;
                Ok(Self::File(path.to_owned(), file))
            }
        }
    }

    /// Returns whether the output is a terminal, which must not show progress as well.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Stdout { out, .. } if out.is_terminal())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout { out, checks_text } => {
                if std::mem::take(checks_text) && !is_text(&bytes[..bytes.len().min(SNIFF_LEN)]) {
                    let advice = "-o FILE writes it to a file, -o - prints it anyway";
                    return Err(Failure::Usage(format!("the object is not text; {advice}")));
                }
                out.write(bytes)
            }
            Self::Device(path, file) => file.write_all(bytes).map_err(|e| failure(path, &e)),
            Self::File(path, file) => file.write_all(bytes).map_err(|e| failure(path, &e)),
        }
    }

    /// Ends the output and publishes the file.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout { mut out, .. } => out.flush(),
            Self::Device(path, mut file) => file.flush().map_err(|e| failure(&path, &e)),
            Self::File(path, file) => file.publish().map_err(|e| failure(&path, &e)),
        }
    }
}

/// Returns whether a path is `-`, which stands for standard output.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns whether bytes are text, possibly cut within a character.
fn is_text(bytes: &[u8]) -> bool {
    let cut_off = |error: std::str::Utf8Error| error.error_len().is_none();
    !bytes.contains(&0) && std::str::from_utf8(bytes).map_or_else(cut_off, |_| true)
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::Error(format!("{}: write: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_distinguished_from_other_bytes() {
        for text in [&b""[..], b"a\tb\n", "é".as_bytes(), b"caf\xc3"] {
            assert!(is_text(text), "{text:?}");
        }
        for bytes in [&b"PK\0\x01"[..], b"\xff\xd8\xff", b"a\xc3a"] {
            assert!(!is_text(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn a_file_is_published_when_it_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let names = || fs::read_dir(folder.path()).expect("a folder").count();
        let open = || Output::open(Some(&path)).map_err(|_| "no output").expect("an output");
        let write = |output: &mut Output| output.write(b"bytes").map_err(|_| ()).expect("room");
        let mut output = open();
        write(&mut output);
        assert!(!path.exists());
        drop(output);
        assert_eq!(names(), 0);
        let mut output = open();
        write(&mut output);
        output.finish().map_err(|_| ()).expect("room");
        assert_eq!(fs::read(&path).expect("the file"), b"bytes");
        assert_eq!(names(), 1);
    }
}
