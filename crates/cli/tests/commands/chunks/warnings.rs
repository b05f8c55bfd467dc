//! Folders of other users, and the warnings of `get`, `serve` and `stat`.

use super::origin::{Server, noise};
use super::serve::{Served, serve_with, served_by, served_in};
use crate::folder::{Folder, Run};
use nuthatch_chunks::{Chunks, Options};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::Value;
use std::fs::{self, File};
use std::io::BufReader;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

const LEN: usize = 2_500_000;
const NOBODY: u32 = 65_534;
const READ_ONLY: &str = "nuthatch: warning: cache: this process can only read the folder, and \
                         stores nothing: Permission denied (os error 13)\n";
const PASSED: &str = "nuthatch: warning: cannot open the folder ";
const ADVICE: &str = "Permission denied (os error 13); run as the owner of the folder, have it \
                      shared with your group, or use another folder";

/// Runs the command as a user who is not root.
pub(super) fn run_as_another_user(folder: &Folder, arguments: &[&str]) -> Run {
    let (command, _program) = as_another_user(folder, arguments);
    Run::of(command, b"")
}

/// Returns the command for a user who is not root. That user may not have access to the program, so
/// it runs from a file that stays open until the command has started.
pub(super) fn as_another_user(folder: &Folder, arguments: &[&str]) -> (Command, File) {
    folder.mode(".", 0o755);
    let program = File::open(env!("CARGO_BIN_EXE_nuthatch")).expect("the program");
    fcntl_setfd(&program, FdFlags::empty()).expect("a file that children have");
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.args(arguments).current_dir(folder.path("."));
    if fs::metadata("/proc/self").expect("this process").uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    (command, program)
}

/// Sets the modes of the cache folder and its files.
pub(super) fn set_modes(folder: &Folder, of_folder: u32, of_files: u32) {
    for entry in fs::read_dir(folder.path("cache")).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        folder.mode(&format!("cache/{}", name.display()), of_files);
    }
    folder.mode("cache", of_folder);
}

fn mode(folder: &Folder, name: &str) -> u32 {
    fs::metadata(folder.path(name)).expect("a file").permissions().mode() & 0o7777
}

/// Returns the modes of all files of the cache, without duplicates.
fn modes_of_files(folder: &Folder) -> Vec<u32> {
    let entries = fs::read_dir(folder.path("cache")).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut modes: Vec<_> =
        names.map(|name| mode(folder, &format!("cache/{}", name.display()))).collect();
    modes.sort_unstable();
    modes.dedup();
    modes
}

/// Creates a folder whose cache has a whole object.
pub(super) fn filled(origin: &Server) -> Folder {
    let folder = Folder::new();
    let url = origin.url("/a");
    let run =
        folder.run(&["chunks", "get", &url, "--cache", "cache", "--limit", "64MiB", "-o", "first"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    folder
}

#[test]
fn a_folder_that_cannot_be_listed_is_not_treated_as_empty() {
    let origin = Server::new(noise(LEN, 1));
    let folder = filled(&origin);
    set_modes(&folder, 0o000, 0o600);
    for command in [&["stat"][..], &["list"], &["verify"], &["clear"], &["prune"], &["pin", "a"]] {
        let run =
            run_as_another_user(&folder, &[&["chunks"], command, &["--cache", "cache"]].concat());
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{command:?}");
        let expected = format!("nuthatch: cannot list the folder cache: {ADVICE}\n");
        assert_eq!(run.stderr, expected, "{command:?}");
    }
    // With this mode the folder can be listed, but its files cannot be opened.
    folder.mode("cache", 0o444);
    let run = run_as_another_user(&folder, &["chunks", "stat", "--cache", "cache"]);
    assert_eq!(run.status, Some(3));
    assert!(run.stderr.contains(ADVICE), "{}", run.stderr);
    folder.mode("cache", 0o700);
}

#[test]
fn get_passes_through_beside_a_folder_that_may_not_be_listed_with_one_warning() {
    let body = noise(LEN, 2);
    let origin = Server::new(body.clone());
    let folder = filled(&origin);
    set_modes(&folder, 0o000, 0o600);
    let url = origin.url("/a");
    let get = ["chunks", "get", &url, "--cache", "cache"];
    let run = run_as_another_user(&folder, &[&get[..], &["--quiet"]].concat());
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(run.stdout_bytes == body);
    assert!(run.stderr.starts_with(PASSED) && run.stderr.contains(ADVICE), "{}", run.stderr);
    assert!(run.stderr.ends_with("; reads pass through to the origin\n"), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    // The summary is a line of its own.
    let run = run_as_another_user(&folder, &[&get[..], &["--json"]].concat());
    let (warning, json) = run.stderr.split_once('\n').expect("two lines");
    assert!(warning.starts_with(PASSED), "{warning}");
    let json: Value = serde_json::from_str(json).expect("a JSON object");
    assert_eq!((&json["from_origin_bytes"], &json["from_cache_bytes"]), (&LEN.into(), &0.into()));
    let run = run_as_another_user(&folder, &[&get[..], &["--offline"]].concat());
    assert_eq!((run.status, &run.stdout[..]), (Some(3), ""));
    assert!(run.stderr.contains(ADVICE), "{}", run.stderr);
    folder.mode("cache", 0o700);
}

#[test]
fn get_and_stat_warn_of_a_folder_that_can_only_be_read() {
    let body = noise(LEN, 3);
    let origin = Server::new(body.clone());
    let folder = filled(&origin);
    set_modes(&folder, 0o555, 0o444);
    origin.clear_requests();
    let mode = "nuthatch: warning: cache: other users may use this folder: expected mode 0700, \
                found 0555; change it with chmod, or share it with a group\n";
    let both = format!("{READ_ONLY}{mode}");
    let url = origin.url("/a");
    let get = ["chunks", "get", &url, "--cache", "cache"];
    let run = run_as_another_user(&folder, &[&get[..], &["--quiet"]].concat());
    assert_eq!((run.status, &run.stderr[..]), (Some(0), &both[..]));
    assert!(run.stdout_bytes == body && origin.ranges().is_empty());
    let run = run_as_another_user(&folder, &[&get[..], &["--json", "-o", "/dev/null"]].concat());
    assert_eq!((run.status, &run.stderr[..]), (Some(0), &both[..]));
    let json: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!((&json["from_cache_bytes"], &json["not_kept"]), (&LEN.into(), &0.into()));
    // An object that is not in the cache is read from its origin and counted as not kept.
    let other = origin.url("/b");
    let get = ["chunks", "get", &other, "--cache", "cache", "--json", "-o", "/dev/null"];
    let run = run_as_another_user(&folder, &get);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), &both[..]));
    let json: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!((&json["from_origin_bytes"], &json["not_kept"]), (&LEN.into(), &3.into()));
    let stat = ["chunks", "stat", "--cache", "cache", "--json"];
    let run = run_as_another_user(&folder, &stat);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), &both[..]));
    let stat: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!((&stat["read_only"], &stat["limit_bytes"]), (&true.into(), &(64 << 20).into()));
    for command in [&["clear"][..], &["prune"], &["pin", &url], &["remove", &url]] {
        let arguments = [&["chunks"], command, &["--cache", "cache"]].concat();
        let run = run_as_another_user(&folder, &arguments);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{command:?}: {}", run.stderr);
        let expected = "nuthatch: cache: this process can only read the folder: Permission denied \
                        (os error 13)\n";
        assert_eq!(run.stderr, expected, "{command:?}");
    }
    set_modes(&folder, 0o700, 0o600);
}

#[test]
fn get_and_serve_warn_once_of_a_folder_that_other_users_may_use() {
    let body = noise(LEN, 4);
    let origin = Server::new(body.clone());
    let folder = Folder::new();
    fs::create_dir(folder.path("cache")).expect("a folder");
    folder.mode("cache", 0o755);
    let expected = "cache: other users may use this folder: expected mode 0700, found 0755; change \
                it with chmod, or share it with a group\n";
    let url = origin.url("/a");
    let get = ["chunks", "get", &url, "--cache", "cache", "--limit", "64MiB", "--quiet"];
    let run = folder.run(&get);
    let warning = format!("nuthatch: warning: {expected}");
    assert_eq!((run.status, &run.stderr[..]), (Some(0), &warning[..]));
    assert!(run.stdout_bytes == body);
    let served = served_in(folder, &origin.url("/"), &[]);
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    served.signal();
    let logged = served.stopped();
    let warnings: Vec<_> =
        logged.lines().filter(|line| line.to_lowercase().contains("warn")).collect();
    let [warning] = warnings[..] else { panic!("{logged}") };
    assert!(warning.contains("WARN") && warning.ends_with(expected.trim_end()), "{logged}");
}

#[test]
fn get_and_serve_share_a_folder_with_its_group_and_later_commands_keep_that() {
    let body = noise(LEN, 5);
    let origin = Server::new(body.clone());
    let url = origin.url("/a");
    let get = ["chunks", "get", &url, "--cache", "cache", "--quiet"];
    let shared = |folder: &Folder| {
        assert_eq!((mode(folder, "cache"), modes_of_files(folder)), (0o2770, vec![0o660]));
        // A process without --share-with-group keeps the modes, without a warning.
        let run = folder.run(&[&get[..], &["--limit", "32MiB"]].concat());
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
        assert!(run.stdout_bytes == body);
        assert_eq!((mode(folder, "cache"), modes_of_files(folder)), (0o2770, vec![0o660]));
    };
    let folder = Folder::new();
    let run = folder.run(&[&get[..], &["--limit", "64MiB", "--share-with-group"]].concat());
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    shared(&folder);
    let served = served_in(Folder::new(), &origin.url("/"), &["--share-with-group"]);
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    shared(&served.folder);
    served.signal();
    served.stopped();
}

#[test]
fn a_folder_is_private_unless_it_is_shared() {
    let origin = Server::new(noise(LEN, 6));
    let folder = filled(&origin);
    assert_eq!((mode(&folder, "cache"), modes_of_files(&folder)), (0o700, vec![0o600]));
    // Sharing an existing folder changes the modes of all its files and of later files.
    let url = origin.url("/b");
    let get = ["chunks", "get", &url, "--cache", "cache", "--quiet", "-o", "out"];
    let run = folder.run(&[&get[..], &["--share-with-group"]].concat());
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    assert_eq!((mode(&folder, "cache"), modes_of_files(&folder)), (0o2770, vec![0o660]));
    drop(Chunks::open(folder.path("cache"), &Options::new()).expect("a cache"));
    let run = folder.run(&["chunks", "stat", "--cache", "cache"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "the group is meant to use it");
}

#[test]
fn a_folder_that_becomes_read_only_under_a_server_is_served_with_one_warning_until_it_is_not() {
    let body = noise(LEN, 7);
    let origin = Server::new(body.clone());
    let folder = Folder::new();
    // The folder belongs to the user of the server.
    folder.mode(".", 0o777);
    let (command, program) = as_another_user(&folder, &serve_with(&["--admin", "127.0.0.1:0"]));
    folder.mode(".", 0o777);
    let mut served = served_by(folder, command, &origin.url("/"), &["--admin"]);
    drop(program);
    let mut log = BufReader::new(served.child.stderr.take().expect("its output"));
    let read_only = |served: &Served| {
        let admin = served.said[1].strip_prefix("metrics at ").expect("an address");
        let mut command = Command::new("curl");
        command.args(["--silent", "--noproxy", "*", admin]);
        let text = Run::of(command, b"").stdout;
        let line = text.lines().find(|line| line.starts_with("nuthatch_chunks_cache_read_only "));
        line.expect("a gauge").to_owned()
    };
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    assert_eq!(read_only(&served), "nuthatch_chunks_cache_read_only 0");
    served.folder.mode("cache", 0o500);
    for object in 0..8 {
        assert!(served.curl(&format!("/b{object}"), &[]).stdout_bytes == body);
    }
    let refused = "WARN nuthatch::chunks: this process can only read the folder of the cache now; \
                   nothing is stored";
    served.log_until(&mut log, refused);
    assert_eq!(read_only(&served), "nuthatch_chunks_cache_read_only 1");
    origin.clear_requests();
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    assert!(origin.ranges().is_empty(), "what was there before is there still");
    served.folder.mode("cache", 0o700);
    assert!(served.curl("/c", &[]).stdout_bytes == body);
    let writable = "INFO nuthatch::chunks: this process can write to the folder of the cache again";
    let logged = served.log_until(&mut log, writable);
    assert!(!logged.contains("WARN"), "{logged}");
    assert_eq!(read_only(&served), "nuthatch_chunks_cache_read_only 0");
    served.signal();
    served.child.wait().expect("its end");
}

#[test]
fn verify_of_a_read_only_folder_does_not_report_removals() {
    let origin = Server::new(noise(LEN, 3));
    let folder = filled(&origin);
    let path = "cache/0000000000000001.seg";
    let mut bytes = folder.bytes(path);
    bytes[1_500_000] ^= 1;
    folder.file(path, bytes);
    set_modes(&folder, 0o555, 0o444);
    for _ in 0..2 {
        let run = run_as_another_user(&folder, &["chunks", "verify", "--cache", "cache"]);
        assert_eq!(run.status, Some(1), "{}", run.stderr);
        assert!(run.stderr.ends_with(" is damaged\n"), "{}", run.stderr);
        let expected = "cache: 1 damaged chunks, not removed because this process can only read \
                        the folder; ";
        assert!(run.stdout.starts_with(expected), "{}", run.stdout);
    }
    set_modes(&folder, 0o700, 0o600);
    let run = folder.run(&["chunks", "verify", "--cache", "cache"]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    assert!(run.stdout.starts_with("cache: 1 damaged chunks removed; "), "{}", run.stdout);
}

#[test]
fn a_server_fetches_a_chunk_again_that_verify_found_damaged() {
    let body = noise(LEN, 3);
    let origin = Server::new(body.clone());
    let served = served_in(Folder::new(), &origin.url("/"), &[]);
    // Stored, then read and compared with its checksum.
    for _ in 0..2 {
        assert!(served.curl("/a", &[]).stdout_bytes == body);
    }
    let path = "cache/0000000000000001.seg";
    let mut bytes = served.folder.bytes(path);
    let at = bytes.windows(64).position(|window| *window == body[5000..5064]).expect("the data");
    bytes[at] ^= 1;
    // In place, since the server has the file open.
    fs::write(served.folder.path(path), bytes).expect("a segment");
    origin.clear_requests();
    let run = served.folder.run(&["chunks", "verify", "--cache", "cache"]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    assert!(served.curl("/a", &[]).stdout_bytes == body);
    assert_eq!(origin.ranges().len(), 1, "the damaged chunk was fetched");
    // A process that has not read the chunk compares it.
    let mut bytes = served.folder.bytes(path);
    let at = bytes.windows(64).position(|window| *window == body[1_500_000..1_500_064]);
    bytes[at.expect("the data")] ^= 1;
    fs::write(served.folder.path(path), bytes).expect("a segment");
    let url = origin.url("/a");
    let run = served.folder.run(&["chunks", "get", &url, "--cache", "cache", "--quiet"]);
    assert!(run.status == Some(0) && run.stdout_bytes == body, "{}", run.stderr);
    assert!(served.curl("/a", &[]).stdout_bytes == body, "and its reads repair it for all");
}
