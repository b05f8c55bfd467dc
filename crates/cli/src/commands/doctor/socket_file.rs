//! Socket files: whether a server could create one.

use super::finding::Finding;
use super::place::Place;
use rustix::fs::{Access, access};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;

/// Checks that a server could create the file of a socket, or replace one that a server has left.
pub(super) fn examine(place: &Place<'_>, path: &Path) -> Finding {
    let Place { name, setting, address } = place;
    let other = format!("set {setting} to another path");
    if let Err(error) = SocketAddr::from_pathname(path) {
        return Finding::problem(name, format!("{address}: {error}"), other);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if let Err(error) = check_folder(folder) {
        let found = format!("{address}: the folder {}: {error}", folder.display());
        let advice = format!(
            "create it, with write permission for the user of the server (RuntimeDirectory= of the \
             systemd unit creates one below /run), or {other}"
        );
        return Finding::problem(name, found, advice);
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Finding::ok(name, format!("{address} is free"))
        }
        Ok(file) if file.file_type().is_socket() => {
            let found = format!("{address}: the socket there is replaced if no process listens");
            Finding::ok(name, found)
        }
        Ok(_) => {
            let found = format!("{address}: expected a socket or nothing, found another file");
            Finding::problem(name, found, format!("move it away, or {other}"))
        }
        Err(error) => Finding::problem(name, format!("{address}: {error}"), other),
    }
}

/// Checks that this process can create a file in a folder.
fn check_folder(folder: &Path) -> io::Result<()> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;
    use nuthatch_listen::Address;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_file_that_cannot_be_created_is_a_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), "").expect("a file");
        drop(UnixListener::bind(folder.path().join("left.sock")).expect("a socket"));
        let long = format!("{}.sock", "x".repeat(108));
        for (file, expected, text) in [
            ("new.sock", Status::Ok, "is free"),
            ("left.sock", Status::Ok, "is replaced"),
            ("absent/x.sock", Status::Problem, "No such file"),
            ("file/x.sock", Status::Problem, "not a directory"),
            ("file", Status::Problem, "found another file"),
            (&long, Status::Problem, "SUN_LEN"),
        ] {
            let path = folder.path().join(file);
            let address = Address::Unix(path.clone());
            let place = Place { name: "socket of resp", setting: "resp", address: &address };
            let finding = examine(&place, &path);
            assert_eq!(finding.status, expected, "{finding:?}");
            assert!(finding.found.contains(text), "{finding:?}");
        }
    }
}
