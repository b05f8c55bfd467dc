//! Files that a server reads when it starts.

use crate::logs;
use crate::outcome::Failure;
use nuthatch_server::unreadable;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A file as text, or standard input for `-`; no longer than `longest` bytes.
pub(crate) fn read_text(file: &str, longest: u64) -> Result<String, Failure> {
    let bytes = match file {
        "-" => read(file, io::stdin().lock(), longest),
        file => read_bytes(Path::new(file), longest),
    }?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::Error(format!("{file}: expected UTF-8, found something else at byte {at}"))
    })
}

/// The bytes of a file, no more than `longest`.
pub(crate) fn read_bytes(path: &Path, longest: u64) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| failed(&name, &error))?;
    read(&name, file, longest)
}

fn read(name: &str, from: impl Read, longest: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut from = from.take(longest + 1);
    from.read_to_end(&mut bytes).map_err(|error| failed(name, &error))?;
    if bytes.len() as u64 > longest {
        let text = format!("{name}: expected a file of at most {longest} bytes, found more");
        return Err(Failure::Error(text));
    }
    Ok(bytes)
}

fn failed(name: &str, error: &io::Error) -> Failure {
    Failure::Error(format!("{name}: expected a file, but {}", unreadable(error)))
}

/// A warning, if everybody on this machine may read a file that holds a secret.
pub(crate) fn open_to_all(path: &Path) -> Option<String> {
    const BY_ALL: u32 = 0o004;
    let mode = path.metadata().ok()?.permissions().mode();
    let path = path.display();
    (mode & BY_ALL != 0).then(|| {
        format!("{path}: everybody on this machine may read it; `chmod o-r {path}` ends that")
    })
}

pub(crate) fn warn_if_open(secret: &Path) {
    if let Some(warning) = open_to_all(secret) {
        logs::warn(warning);
    }
}
