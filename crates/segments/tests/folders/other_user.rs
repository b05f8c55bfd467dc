//! Folders to which another user, or a read-only mount, may not write. Tests often run as root, who
//! may do everything: then the test runs a part of itself in a child, as another user.

use crate::{Case, LABEL, bytes, get, name, put};
use nuthatch_segments::{Error, Id, NotKeptReason, Options, Outcome, Segments, Warning};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "NUTHATCH_TEST_OTHER_USER_FOLDER";
const NOBODY: u32 = 65_534;

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// Sets the modes of the folder and its files, and makes it reachable for other users.
fn set_modes(case: &Case, folder: u32, files: u32) {
    for entry in fs::read_dir(case.path()).expect("the folder") {
        set_mode(&entry.expect("an entry").path(), files);
    }
    set_mode(&case.path(), folder);
    set_mode(case.path().parent().expect("a folder"), 0o755);
}

/// Runs a test of this file as a user other than root.
fn run_as_another_user(case: &Case, test: &str) {
    run_test_as_another_user(case, &format!("other_user::{test}"));
}

/// Returns whether the user of this process is root.
fn is_root() -> bool {
    fs::metadata("/proc/self").expect("this process").uid() == 0
}

/// Runs a test of this program as a user other than root.
pub(crate) fn run_test_as_another_user(case: &Case, test: &str) {
    let mut command = Command::new("/proc/self/exe");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    run_test(command, case, test);
}

/// Runs a test with a command that starts this program.
fn run_test(mut command: Command, case: &Case, test: &str) {
    command.args(["--exact", test, "--nocapture"]);
    command.env(FOLDER, case.path());
    let output = command.output().expect("a child");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {said}{errors}");
    assert!(said.contains("1 passed"), "{test} did not run: {said}");
}

/// Returns the folder if this process is the child.
pub(crate) fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").ino()
}

#[test]
fn an_index_without_permission_is_not_considered_missing() {
    let case = Case::new();
    let owner = case.small();
    put(&owner, 1, 1000);
    let index = case.path().join("index");
    let before = inode(&index);
    // The other user may write to the folder, but not open its files.
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

/// Returns the paths and contents of all files.
fn contents(case: &Case) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(case.path()).expect("the folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> =
        paths.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect();
    found.sort();
    found
}

/// Stores parts 0 to 4 of 10,000 bytes, and pins part 1.
fn fill(case: &Case) {
    let owner = case.open(&Options::new().limit(64 << 20));
    for number in 0..5 {
        put(&owner, number, 10_000);
    }
    owner.pin(name(1), true).expect("a pin");
}

#[test]
fn a_folder_that_can_only_be_read_is_served_and_not_changed() {
    // The modes of the folder and its files: neither may be written, or only one of them.
    for (folder, files) in [(0o555, 0o444), (0o555, 0o666), (0o777, 0o444)] {
        let case = Case::new();
        fill(&case);
        set_modes(&case, folder, files);
        // If the test does not run as root, its user is the owner, whose permissions apply first.
        let before = contents(&case);
        run_as_another_user(&case, "child_uses_a_folder_that_can_only_be_read");
        assert!(contents(&case) == before, "something was changed: {folder:o} {files:o}");
        set_modes(&case, 0o755, 0o644);
    }
}

#[test]
fn child_uses_a_folder_that_can_only_be_read() {
    let Some(folder) = folder_of_child() else { return };
    use_folder_that_can_only_be_read(&folder);
}

#[test]
fn a_folder_on_a_read_only_mount_is_served_and_nothing_in_it_is_removed() {
    let can = |arguments: &[&str]| {
        Command::new("unshare")
            .args(arguments)
            .arg("true")
            .output()
            .is_ok_and(|run| run.status.success())
    };
    let own_mounts = [&["--mount"][..], &["--user", "--map-root-user", "--mount"]];
    let Some(own_mounts) = own_mounts.into_iter().find(|arguments| can(arguments)) else {
        // Not with a macro: the output of a test that succeeds would not be shown.
        let said = "not tested: a folder on a read-only mount, since unshare(1) is refused";
        return writeln!(std::io::stderr(), "{said}").expect("standard error");
    };
    let case = Case::new();
    fill(&case);
    // A process that died while it changed the folder leaves files that the next one removes.
    for left in ["index.new", "settings.new"] {
        fs::write(case.path().join(left), b"half").expect("a file");
    }
    let check = |child: &str| {
        let before = contents(&case);
        let mut command = Command::new("unshare");
        command.args(own_mounts).arg(std::env::current_exe().expect("this program"));
        run_test(command, &case, &format!("other_user::{child}"));
        assert!(contents(&case) == before, "{child}: something was changed");
    };
    check("child_uses_a_read_only_mount");
    // Where the folder is writable, a damaged index is rebuilt.
    fs::write(case.path().join("index"), vec![7; 100_000]).expect("a damaged index");
    check("child_opens_a_damaged_folder_on_a_read_only_mount");
    drop(case.open(&Options::new()));
    assert_eq!(get(&case.open(&Options::new()), 1), Some(10_000));
    assert!(!case.path().join("index.new").exists(), "what was left is removed here");
}

/// Mounts a folder a second time, read-only.
fn mounted_read_only(folder: &Path) -> PathBuf {
    let path = folder.with_extension("mount");
    fs::create_dir_all(&path).expect("a folder");
    let mount = |arguments: &[&str]| {
        let run = Command::new("mount").args(arguments).arg(&path).output().expect("mount(8)");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    mount(&["--bind", folder.to_str().expect("a name in UTF-8")]);
    mount(&["-o", "remount,bind,ro"]);
    let refused = fs::write(path.join("file"), b"").expect_err("it can only be read");
    assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    path
}

#[test]
fn child_uses_a_read_only_mount() {
    let Some(folder) = folder_of_child() else { return };
    use_folder_that_can_only_be_read(&mounted_read_only(&folder));
}

#[test]
fn child_opens_a_damaged_folder_on_a_read_only_mount() {
    let Some(folder) = folder_of_child() else { return };
    match Segments::open(mounted_read_only(&folder), &Options::new()) {
        Ok(segments) => {
            assert_eq!(put(&segments, 7, 10_000), Outcome::NotKept(NotKeptReason::ReadOnly));
        }
        Err(error) => assert!(error.to_string().contains("ead-only"), "{error}"),
    }
}

/// Uses a read-only folder that [`fill`] filled.
fn use_folder_that_can_only_be_read(folder: &Path) {
    // A setting that cannot be changed is not ignored, and nothing is evicted for it.
    let new = Options::new;
    for (options, wanted, value) in [
        (new().limit(4 << 20), "limit", "4194304"),
        (new().min_free(1 << 40), "min_free", "1099511627776"),
        (new().parts(100), "parts", "100"),
        (new().share_with_group(true), "share_with_group", "true"),
    ] {
        match Segments::open(folder, &options) {
            Err(Error::Options { option, found, .. }) => {
                assert_eq!((option, &found[..]), (wanted, value));
            }
            opened => panic!("{wanted}: {opened:?}"),
        }
    }
    let same = new().limit(64 << 20).share_with_group(false);
    let segments = Segments::open(folder, &same).expect("to read");
    assert!(segments.is_read_only() && segments.stat().read_only);
    assert_eq!(segments.stat().limit, 64 << 20);
    assert!(matches!(segments.warnings()[..], [Warning::ReadOnly { .. }, ..]));
    for number in 0..5 {
        assert_eq!(get(&segments, number), Some(10_000));
        let found = segments.find(&Id::new(name(number), 0), LABEL).expect("the part is stored");
        let view = found.view(0..10_000).expect("bytes").expect("a map");
        assert_eq!(*view, bytes(number, 10_000));
    }
    assert_eq!(put(&segments, 7, 10_000), Outcome::NotKept(NotKeptReason::ReadOnly));
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
    assert!(segments.try_fetch_lock(0..10).expect("a fetch lock").is_some());
    assert_eq!(segments.verify().good, 5);
}

/// In the first segment, either the header or the head of the first record is zeroed.
#[test]
fn damage_in_a_folder_that_can_only_be_read_is_reported_each_time() {
    for offset in [64, 0] {
        let case = Case::new();
        fill(&case);
        let [path] = &case.files("seg")[..] else { panic!("one segment") };
        let mut bytes = fs::read(path).expect("a segment");
        bytes[offset..offset + 64].fill(0);
        fs::write(path, bytes).expect("a segment");
        set_modes(&case, 0o555, 0o444);
        run_as_another_user(&case, "child_verifies_a_damaged_folder_that_can_only_be_read");
        set_modes(&case, 0o755, 0o644);
    }
}

#[test]
fn child_verifies_a_damaged_folder_that_can_only_be_read() {
    let Some(folder) = folder_of_child() else { return };
    let segments = Segments::open(folder, &Options::new()).expect("to read");
    for _ in 0..2 {
        let verified = segments.verify();
        assert_eq!((verified.good + verified.damaged, verified.torn), (5, 1), "{verified:?}");
        assert!([1, 5].contains(&verified.damaged), "{verified:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_opened_is_an_error_and_is_not_replaced() {
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
fn files_that_root_creates_belong_to_the_owner_of_the_folder() {
    if !is_root() {
        return;
    }
    let case = Case::new();
    fs::create_dir(case.path()).expect("a folder");
    set_modes(&case, 0o700, 0o600);
    std::os::unix::fs::chown(case.path(), Some(NOBODY), Some(NOBODY)).expect("an owner");
    // Root creates the index, the settings and a segment, and the user writes to them.
    assert_eq!(put(&case.small(), 1, 1000), Outcome::Kept);
    run_as_another_user(&case, "child_uses_files_that_root_created");
    assert_eq!(get(&case.small(), 2), Some(2000));
}

#[test]
fn child_uses_files_that_root_created() {
    let Some(folder) = folder_of_child() else { return };
    let segments = Segments::open(&folder, &Options::new()).expect("a folder");
    assert!(!segments.is_read_only());
    assert_eq!(get(&segments, 1), Some(1000));
    assert_eq!(put(&segments, 2, 2000), Outcome::Kept);
}
