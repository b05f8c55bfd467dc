//! Where bytes of an object go: a file that appears when it is whole, or standard output.

use crate::files::WholeFile;
use crate::outcome::Failure;
use crate::terminal::Stdout;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes that are looked at to tell whether a terminal should show them.
const LOOKED_AT: usize = 4096;

pub(super) enum Output {
    Stdout {
        out: Stdout,
        /// Nothing was written yet to a terminal, which is to be spared what is no text.
        spared: bool,
    },
    /// A device or a pipe, which cannot be replaced.
    Device(PathBuf, File),
    File(PathBuf, WholeFile),
}

impl Output {
    /// Standard output, as it is with `-`, or a file.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| !is_stdout(path)) else {
            let out = Stdout::new();
            let spared = path.is_none() && out.is_terminal();
            return Ok(Self::Stdout { out, spared });
        };
        // What a link leads to is replaced, not the link.
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
                let file = WholeFile::begin(target).map_err(|error| failure(path, &error))?;
                Ok(Self::File(path.to_owned(), file))
            }
        }
    }

    /// Whether bytes are shown to somebody, so that nothing else should be.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Stdout { out, .. } if out.is_terminal())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout { out, spared } => {
                if std::mem::take(spared) && !is_text(&bytes[..bytes.len().min(LOOKED_AT)]) {
                    let advice = "-o FILE writes it to a file, -o - shows it all the same";
                    return Err(Failure::Usage(format!("the object is no text; {advice}")));
                }
                out.put(bytes)
            }
            Self::Device(path, file) => file.write_all(bytes).map_err(|e| failure(path, &e)),
            Self::File(path, file) => file.write_all(bytes).map_err(|e| failure(path, &e)),
        }
    }

    /// All was written: the file appears.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout { mut out, .. } => out.flush(),
            Self::Device(path, mut file) => file.flush().map_err(|e| failure(&path, &e)),
            Self::File(path, file) => file.publish().map_err(|e| failure(&path, &e)),
        }
    }
}

/// Whether a path is the name that standard output has on the command line.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether bytes are those of a text, perhaps cut off within a character.
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
    fn texts_are_told_from_other_bytes() {
        for text in [&b""[..], b"a\tb\n", "é".as_bytes(), b"caf\xc3"] {
            assert!(is_text(text), "{text:?}");
        }
        for bytes in [&b"PK\0\x01"[..], b"\xff\xd8\xff", b"a\xc3a"] {
            assert!(!is_text(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn a_file_appears_when_it_is_whole() {
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
