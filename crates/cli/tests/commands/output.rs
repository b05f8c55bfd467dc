//! Outputs that `build -o` replaces or refuses; files that are truncated while a command reads
//! them.

use crate::folder::{Folder, Run, lines, row};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("a.jsonl", lines(&[("a", "1"), ("b", "\"text\"")]));
    folder
}

#[test]
fn a_snapshot_is_not_built_over_its_input_under_any_name() {
    let folder = folder();
    let input = folder.bytes("a.jsonl");
    fs::hard_link(folder.path("a.jsonl"), folder.path("hard.jsonl")).expect("a link");
    symlink("a.jsonl", folder.path("soft.jsonl")).expect("a link");
    for output in ["a.jsonl", "./a.jsonl", "hard.jsonl", "soft.jsonl"] {
        let error = folder.build_fails(2, &["a.jsonl", "-o", output]);
        let expected = "expected another file than the input a.jsonl";
        assert!(error.contains(expected) && error.contains(output), "{error}");
    }
    let mut command = folder.command(&["build", "-", "-o", "a.jsonl"]);
    let stdin = File::open(folder.path("a.jsonl")).expect("the input");
    let output = command.stdin(stdin).output().expect("the command to end");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("expected another file than the input <stdin>"), "{error}");
    assert_eq!(output.status.code(), Some(2));
    assert!(folder.bytes("a.jsonl") == input && folder.bytes("hard.jsonl") == input);
}

#[test]
fn a_snapshot_is_not_appended_to_its_input() {
    let folder = folder();
    let input = folder.bytes("a.jsonl");
    let append = File::options().append(true).open(folder.path("a.jsonl")).expect("the input");
    let mut command = folder.command(&["build", "a.jsonl", "-o", "-"]);
    let output = command.stdout(append).output().expect("the command to end");
    let error = String::from_utf8_lossy(&output.stderr);
    let expected = "/dev/stdout: expected another file than the input a.jsonl";
    assert!(error.contains(expected), "{error}");
    assert_eq!(output.status.code(), Some(2));
    assert!(folder.bytes("a.jsonl") == input);
}

#[test]
fn devices_pipes_and_folders_are_not_replaced() {
    let folder = folder();
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status().expect("mkfifo");
    assert!(made.success());
    symlink("/dev/null", folder.path("link")).expect("a link");
    fs::create_dir(folder.path("folder")).expect("a folder");
    // Standard output is a pipe here, and this is a link to it.
    for output in ["pipe", "link", "/dev/null", "/dev/stdout", "folder"] {
        let error = folder.build_fails(3, &["a.jsonl", "-o", output]);
        assert!(error.starts_with(&format!("nuthatch: {output}: create")), "{error}");
    }
    assert!(!fs::metadata("/dev/null").expect("the device").is_file());
    assert!(folder.path("link").symlink_metadata().expect("the link").is_symlink());
}

#[test]
fn a_dash_writes_the_snapshot_to_standard_output() {
    let folder = folder();
    folder.build(&["a.jsonl", "-o", "a.nut"]);
    let run = folder.run(&["build", "--quiet", "a.jsonl", "-o", "-"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""));
    assert!(run.stdout_bytes == folder.bytes("a.nut"));
    let run = folder.run(&["build", "a.jsonl", "-o", "-"]);
    assert!(run.stdout_bytes == folder.bytes("a.nut"));
    assert!(run.stderr.contains("entries   2\n"), "the summary goes to stderr: {}", run.stderr);
    assert!(!folder.path("-").exists());
    let failed = folder.run_with(&["build", "-", "-o", "-"], b"{}");
    assert_eq!((failed.status, &failed.stdout_bytes[..]), (Some(3), &b""[..]));
}

#[test]
fn a_snapshot_that_its_reader_cuts_off_is_a_failure() {
    let folder = folder();
    // More than a pipe holds.
    let value = format!("\"{}\"", "x".repeat(1 << 20));
    folder.file("long.jsonl", lines(&[("a", &value)]));
    let mut command = folder.command(&["build", "--quiet", "long.jsonl", "-o", "-"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command to end");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("closed it before it had the whole snapshot"), "{error}");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_dash_leaves_nothing_in_the_folder_of_temporary_files() {
    let folder = folder();
    fs::create_dir(folder.path("tmp")).expect("a folder");
    let mut command = folder.command(&["build", "--quiet", "a.jsonl", "-o", "-"]);
    command.env("TMPDIR", folder.path("tmp"));
    assert_eq!(Run::of(command, b"").status, Some(0));
    assert_eq!(fs::read_dir(folder.path("tmp")).expect("the folder").count(), 0);
}

#[test]
fn an_output_that_is_replaced_keeps_its_mode_and_its_links() {
    let folder = folder();
    folder.file("a.nut", "old").mode("a.nut", 0o640);
    symlink("a.nut", folder.path("link.nut")).expect("a link");
    folder.build(&["a.jsonl", "-o", "link.nut"]);
    let mode = fs::metadata(folder.path("a.nut")).expect("the file").permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    assert!(folder.path("link.nut").symlink_metadata().expect("the link").is_symlink());
    assert_eq!(folder.rows("a.nut").len(), 2);
}

/// Returns 4,000 rows with values of about 1,000 bytes.
fn four_megabytes() -> String {
    let text = "x".repeat(1000);
    (0..4000).map(|n| row(&n.to_string(), &format!("\"{n} {text}\"")) + "\n").collect()
}

/// The reader of the output waits until the file is truncated, and then reads on.
#[test]
fn a_file_that_is_truncated_under_dump_is_an_error_and_no_crash() {
    use std::io::Read;
    let folder = Folder::new();
    folder.file("a.jsonl", four_megabytes());
    for format in ["jsonl", "tsv"] {
        folder.build(&["a.jsonl", "-o", "a.nut"]);
        let mut child = folder
            .command(&["dump", "a.nut", "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command to start");
        let mut stdout = child.stdout.take().expect("its output");
        stdout.read_exact(&mut [0; 10]).expect("the first bytes");
        let file = File::options().write(true).open(folder.path("a.nut")).expect("the file");
        file.set_len(4096).expect("a shorter file");
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).expect("the rest");
        let output = child.wait_with_output().expect("the command to end");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{error}");
        let expected = "nuthatch: a.nut: the file was truncated or could not be read while it was \
                        mapped\n";
        assert!(error.ends_with(expected), "{error}");
        assert!(!rest.contains(&0), "no zeros of lost pages are printed");
    }
}

/// Every command that reads a snapshot used to end by SIGBUS.
#[test]
fn a_file_that_is_truncated_once_it_is_mapped_is_an_error_for_every_command() {
    let folder = Folder::new();
    folder.file("a.jsonl", four_megabytes());
    let keys: Vec<_> = (0..40).map(|key| key.to_string()).collect();
    let get: Vec<_> = ["get", "a.nut"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    let expected =
        "nuthatch: a.nut: the file was truncated or could not be read while it was mapped\n";
    for (command, lens) in [
        (&get[..], &[0, 4096, 8192][..]),
        (&["verify", "a.nut"], &[0, 4096, 2 << 20]),
        (&["dump", "a.nut"], &[0, 4096, 2 << 20]),
        // Reads the header alone.
        (&["info", "a.nut"], &[0]),
    ] {
        for &len in lens {
            folder.build(&["a.jsonl", "-o", "a.nut"]);
            let run = folder.run_truncated(command, "a.nut", len);
            assert_eq!(run.status, Some(3), "{command:?}, {len} bytes left: {run:?}");
            assert!(run.stderr.ends_with(expected), "{command:?}: {}", run.stderr);
            assert!(!run.stdout_bytes.contains(&0), "{command:?} prints zeros of lost pages");
            assert_eq!(folder.bytes("a.nut").len() as u64, len, "it was truncated");
        }
    }
    // What `info` reads is left.
    folder.build(&["a.jsonl", "-o", "a.nut"]);
    assert_eq!(folder.run_truncated(&["info", "a.nut"], "a.nut", 4096).status, Some(0));
}

#[test]
fn get_reads_compressed_values_as_any_other() {
    let folder = Folder::new();
    let text = "nuthatch ".repeat(100);
    folder.file("a.jsonl", lines(&[("a", &format!("\"{text}\"")), ("b", "1")]));
    folder.build(&["a.jsonl", "-o", "a.nut", "--compress", "zstd"]);
    let run = folder.run(&["get", "a.nut", "a", "--raw"]);
    assert_eq!((run.status, run.stdout == text), (Some(0), true));
}
