//! Reading of small files as a whole, such as settings, passwords and tokens.

use crate::logs;
use crate::outcome::Failure;
use nuthatch_listen::{open_readable, refused_pipe, refuses_pipes};
use nuthatch_server::unreadable;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reads a file, or standard input for `-`, as text of at most `max_len` bytes.
pub(crate) fn read_text(file: &str, max_len: u64) -> Result<String, Failure> {
    let bytes = match file {
        "-" if refuses_pipes() => Err(failed(file, &refused_pipe())),
        "-" => read(file, io::stdin().lock(), max_len),
        file => read_bytes(Path::new(file), max_len),
    }?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::Error(format!("{file}: expected UTF-8, found something else at byte {at}"))
    })
}

/// Maximum length of a password or token, in bytes.
const MAX_SECRET_LEN: u64 = 64 << 10;

/// Reads a password or token from a file with one line. `what` names it with its article.
pub(crate) fn read_secret(path: &Path, what: &str) -> Result<String, Failure> {
    let name = path.display().to_string();
    let text = read_text(&name, MAX_SECRET_LEN)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let found = match line {
        "" => "nothing",
        line if line.contains('\n') => "several lines",
        line => return Ok(line.to_owned()),
    };
    Err(Failure::Error(format!("{name}: expected one line with {what}, found {found}")))
}

/// Reads a file of at most `max_len` bytes.
pub(crate) fn read_bytes(path: &Path, max_len: u64) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let file = open_readable(path).map_err(|error| failed(&name, &error))?;
    read(&name, file, max_len)
}

fn read(name: &str, from: impl Read, max_len: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut from = from.take(max_len + 1);
    from.read_to_end(&mut bytes).map_err(|error| failed(name, &error))?;
    if bytes.len() as u64 > max_len {
        let text = format!("{name}: expected a file of at most {max_len} bytes, found more");
        return Err(Failure::Error(text));
    }
    Ok(bytes)
}

fn failed(name: &str, error: &io::Error) -> Failure {
    Failure::Error(format!("{name}: expected a file, but {}", unreadable(error)))
}

/// Returns a warning if all users of this machine can read a file with a secret.
pub(crate) fn world_readable_warning(path: &Path) -> Option<String> {
    const BY_ALL: u32 = 0o004;
    let mode = path.metadata().ok()?.permissions().mode();
    let path = path.display();
    (mode & BY_ALL != 0)
        .then(|| format!("{path}: all users of this machine can read it; run `chmod o-r {path}`"))
}

pub(crate) fn warn_if_world_readable(secret: &Path) {
    if let Some(warning) = world_readable_warning(secret) {
        logs::warn(warning);
    }
}
