//! Permissions of a folder and its files, and warnings.

use crate::{Case, get, put, small};
use nuthatch_segments::{Disk, Options, Outcome, Segments, SystemDisk, Warning};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const FOLDER: &str = "NUTHATCH_TEST_UMASK_FOLDER";
const SHARED: &str = "NUTHATCH_TEST_UMASK_SHARED";

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o7777
}

/// Returns the modes of all files, without duplicates.
fn modes(case: &Case) -> Vec<u32> {
    let entries = fs::read_dir(case.path()).expect("the folder");
    let mut modes: Vec<_> = entries.map(|entry| mode(&entry.expect("an entry").path())).collect();
    modes.sort_unstable();
    modes.dedup();
    modes
}

/// Uses a folder in a child with a umask.
fn use_with_umask(case: &Case, umask: &str, shared: bool) {
    let program = std::env::current_exe().expect("this program");
    let script = format!("umask {umask} && exec \"$0\" --exact permissions::child_uses_a_folder");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(program).env(FOLDER, case.path());
    if shared {
        command.env(SHARED, "1");
    }
    assert!(command.output().expect("a child").status.success(), "umask {umask}");
}

#[test]
fn child_uses_a_folder() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let shared = std::env::var_os(SHARED).is_some();
    let options = if shared { small().share_with_group(true) } else { small() };
    let segments = Segments::open(folder, &options).expect("a folder");
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
    segments.pin([1; 16], true).expect("a pin");
    drop(segments.try_fetch_lock(0..1).expect("a fetch lock"));
    assert!(segments.warnings().is_empty(), "{:?}", segments.warnings());
}

#[test]
fn a_folder_and_its_files_are_private_whatever_the_umask_is() {
    for umask in ["000", "022", "277"] {
        let case = Case::new();
        use_with_umask(&case, umask, false);
        assert_eq!(mode(&case.path()), 0o700, "umask {umask}");
        assert_eq!(modes(&case), [0o600], "umask {umask}");
    }
}

#[test]
fn share_with_group_gives_the_group_access_with_any_umask() {
    for umask in ["000", "077"] {
        let case = Case::new();
        use_with_umask(&case, umask, true);
        assert_eq!(mode(&case.path()), 0o2770, "umask {umask}");
        // A process without the option does the same.
        drop(case.small().try_fetch_lock(0..1));
        let segments = case.small();
        for number in 100..200 {
            assert_eq!(put(&segments, number, 50_000), Outcome::Kept);
        }
        assert_eq!(modes(&case), [0o660], "umask {umask}");
    }
}

#[test]
fn a_folder_that_is_there_can_be_shared_and_made_private_again() {
    let case = Case::new();
    put(&case.small(), 1, 1000);
    let shared = case.open(&small().share_with_group(true));
    assert_eq!((mode(&case.path()), modes(&case)), (0o2770, vec![0o660]));
    drop(shared);
    drop(case.open(&small().share_with_group(false)));
    assert_eq!((mode(&case.path()), modes(&case)), (0o700, vec![0o600]));
}

#[test]
fn an_existing_folder_with_access_for_other_users_is_reported_and_not_changed() {
    let case = Case::new();
    fs::create_dir(case.path()).expect("a folder");
    fs::set_permissions(case.path(), Permissions::from_mode(0o755)).expect("a mode");
    let segments = case.open(&Options::new().limit(4 << 20));
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
    assert_eq!((mode(&case.path()), modes(&case)), (0o755, vec![0o600]));
    let warnings = segments.warnings();
    let [warning @ Warning::Mode { found: 0o755, expected: 0o700, .. }] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    let text = warning.to_string();
    assert!(text.contains("0700") && text.contains("0755") && text.contains("chmod"), "{text}");
}

/// A disk on which every folder is on a network filesystem.
struct NetworkDisk;

impl Disk for NetworkDisk {
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()> {
        SystemDisk.write(file, head, data, offset)
    }

    fn available(&self, folder: BorrowedFd<'_>) -> io::Result<u64> {
        SystemDisk.available(folder)
    }

    fn network_filesystem(&self, _: &Path) -> io::Result<Option<&'static str>> {
        Ok(Some("nfs"))
    }
}

#[test]
fn a_folder_on_a_network_filesystem_is_used_with_one_warning() {
    let case = Case::new();
    let segments = case.open(&small().disk(Arc::new(NetworkDisk)));
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
    assert_eq!(get(&segments, 1), Some(1000));
    let expected = Warning::Network { path: case.path(), filesystem: "nfs" };
    let warnings = segments.warnings();
    assert_eq!(warnings, [expected]);
    let text = format!(
        "{}: on a network filesystem (nfs): expected a local one; use it from one machine at a \
         time",
        case.path().display()
    );
    assert_eq!(warnings[0].to_string(), text);
    assert!(case.open(&small()).warnings().is_empty(), "it is a local one");
}

#[test]
fn a_folder_that_was_removed_is_made_again_with_its_limits_and_its_sharing() {
    let case = Case::new();
    let options = small().min_free(1 << 20).share_with_group(true);
    drop(case.open(&options));
    let segments = case.open(&Options::new());
    fs::remove_dir_all(case.path()).expect("a folder");
    assert!(segments.is_removed());
    let again = case.open(&segments.options_to_recreate());
    assert_eq!((again.stat().limit, again.stat().min_free), (4 << 20, 1 << 20));
    assert_eq!((mode(&case.path()), modes(&case)), (0o2770, vec![0o660]));
}
