//! Folders in which another user, or a read-only mount, refuses writing. Tests often run as root,
//! whom nothing is refused: then the part in question runs as another user, in a child.

use crate::{Case, LABEL, bytes, get, name, put};
use nuthatch_segments::{Error, Id, Options, Outcome, Reason, Segments, Warning};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "NUTHATCH_TEST_OTHER_USER_FOLDER";
const NOBODY: u32 = 65_534;

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// Gives the folder and its files modes, and makes it reachable for other users.
fn set_modes(case: &Case, folder: u32, files: u32) {
    for entry in fs::read_dir(case.path()).expect("the folder") {
        set_mode(&entry.expect("an entry").path(), files);
    }
    set_mode(&case.path(), folder);
    set_mode(case.path().parent().expect("a folder"), 0o755);
}

/// Runs a test of this file as a user who is not root.
fn run_as_another_user(case: &Case, test: &str) {
    run_test_as_another_user(case, &format!("other_user::{test}"));
}

/// Runs a test of this program as a user who is not root.
pub(crate) fn run_test_as_another_user(case: &Case, test: &str) {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", test, "--nocapture"]);
    command.env(FOLDER, case.path());
    if fs::metadata("/proc/self").expect("this process").uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().expect("a child");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {said}{errors}");
    assert!(said.contains("1 passed"), "{test} did not run: {said}");
}

/// The folder, if this is the child.
pub(crate) fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").ino()
}

#[test]
fn an_index_that_may_not_be_opened_is_not_taken_for_absent() {
    let case = Case::new();
    let owner = case.small();
    put(&owner, 1, 1000);
    let index = case.path().join("index");
    let before = inode(&index);
    // Whoever looks may write to the folder, but not open its files.
    set_modes(&case, 0o777, 0o000);
    run_as_another_user(&case, "child_opens_a_folder_whose_files_are_denied");
    assert_eq!(inode(&index), before, "the index was replaced");
    assert_eq!(get(&owner, 1), Some(1000));
    assert_eq!(case.files("seg").len(), 1);
}

#[test]
fn child_opens_a_folder_whose_files_are_denied() {
    let Some(folder) = folder_of_child() else { return };
    let error = Segments::open(&folder, &Options::new()).expect_err("nothing can be read");
    assert!(error.to_string().contains("ermission denied"), "{error}");
}

/// The names of all files and what they have.
fn contents(case: &Case) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(case.path()).expect("the folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> =
        paths.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect();
    found.sort();
    found
}

#[test]
fn a_folder_that_can_only_be_read_is_served_and_not_changed() {
    // With rights of the folder and its files: neither may be written, then only one of them.
    for (folder, files) in [(0o555, 0o444), (0o555, 0o666), (0o777, 0o444)] {
        let case = Case::new();
        let owner = case.open(&Options::new().limit(64 << 20));
        for number in 0..5 {
            put(&owner, number, 10_000);
        }
        owner.pin(name(1), true).expect("a pin");
        drop(owner);
        set_modes(&case, folder, files);
        // A test that is not run as root is the owner, whose rights come first.
        let before = contents(&case);
        run_as_another_user(&case, "child_uses_a_folder_that_can_only_be_read");
        assert!(contents(&case) == before, "something was changed: {folder:o} {files:o}");
        set_modes(&case, 0o755, 0o644);
    }
}

#[test]
fn child_uses_a_folder_that_can_only_be_read() {
    let Some(folder) = folder_of_child() else { return };
    // A setting that cannot be changed is not ignored, and nothing is evicted for it.
    let new = Options::new;
    for (options, wanted, value) in [
        (new().limit(4 << 20), "limit", "4194304"),
        (new().least_free(1 << 40), "least_free", "1099511627776"),
        (new().parts(100), "parts", "100"),
        (new().share_with_group(true), "share_with_group", "true"),
    ] {
        match Segments::open(&folder, &options) {
            Err(Error::Options { option, found, .. }) => {
                assert_eq!((option, &found[..]), (wanted, value));
            }
            opened => panic!("{wanted}: {opened:?}"),
        }
    }
    let same = new().limit(64 << 20).share_with_group(false);
    let segments = Segments::open(&folder, &same).expect("to read");
    assert!(segments.read_only() && segments.stat().read_only);
    assert_eq!(segments.stat().limit, 64 << 20);
    assert!(matches!(segments.warnings()[..], [Warning::ReadOnly { .. }, ..]));
    for number in 0..5 {
        assert_eq!(get(&segments, number), Some(10_000));
        let found = segments.find(&Id::new(name(number), 0), LABEL).expect("it is there");
        let lent = found.lend(0..10_000).expect("bytes").expect("a map");
        assert_eq!(*lent, bytes(number, 10_000));
    }
    assert_eq!(put(&segments, 7, 10_000), Outcome::NotKept(Reason::ReadOnly));
    assert_eq!(segments.stat().not_kept, 1, "and it is counted");
    segments.remove(&Id::new(name(1), 0));
    assert_eq!(get(&segments, 1), Some(10_000));
    let refused = [
        segments.prune(None).err(),
        segments.prune_older(u64::MAX).err(),
        segments.clear().err(),
        segments.pin(name(2), true).err(),
        segments.set_limit(4 << 20).err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(Error::ReadOnly { .. })), "{error:?}");
    }
    assert!(segments.claim(0..10).expect("a claim").is_some());
    assert_eq!(segments.verify().good, 5);
}

#[test]
fn a_folder_that_cannot_be_opened_is_an_error_and_stays() {
    let case = Case::new();
    put(&case.small(), 1, 1000);
    set_modes(&case, 0o000, 0o600);
    run_as_another_user(&case, "child_opens_a_folder_that_is_denied");
    set_mode(&case.path(), 0o700);
    assert_eq!(get(&case.small(), 1), Some(1000));
}

#[test]
fn child_opens_a_folder_that_is_denied() {
    let Some(folder) = folder_of_child() else { return };
    let error = Segments::open(&folder, &Options::new()).expect_err("it is denied");
    assert!(
        matches!(&error, Error::Io { source, .. }
        if source.kind() == std::io::ErrorKind::PermissionDenied),
        "{error}"
    );
    let below = folder.join("below");
    Segments::open(below, &Options::new()).expect_err("nothing can be made there");
}

#[test]
fn what_root_makes_in_the_folder_of_a_user_belongs_to_him() {
    if fs::metadata("/proc/self").expect("this process").uid() != 0 {
        return;
    }
    let case = Case::new();
    fs::create_dir(case.path()).expect("a folder");
    set_modes(&case, 0o700, 0o600);
    std::os::unix::fs::chown(case.path(), Some(NOBODY), Some(NOBODY)).expect("an owner");
    // Root makes the index, the settings and a segment, and the user goes on with them.
    assert_eq!(put(&case.small(), 1, 1000), Outcome::Kept);
    run_as_another_user(&case, "child_goes_on_with_what_root_made");
    assert_eq!(get(&case.small(), 2), Some(2000));
}

#[test]
fn child_goes_on_with_what_root_made() {
    let Some(folder) = folder_of_child() else { return };
    let segments = Segments::open(&folder, &Options::new()).expect("a folder");
    assert!(!segments.read_only());
    assert_eq!(get(&segments, 1), Some(1000));
    assert_eq!(put(&segments, 2, 2000), Outcome::Kept);
}
