//! Opening a folder, and the errors of it.

use crate::{Case, Item, live, load, log_files, small};
use nuthatch_tier::{Error, FolderState, Options, Tier, stat, verify};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

fn open_error(case: &Case) -> Error {
    Tier::open(case.path(), &small()).expect_err("an error")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o7777
}

/// Changes bytes of the manifest and corrects its checksum.
fn change_manifest(case: &Case, at: usize, to: &[u8]) {
    let path = case.path().join("tier");
    let mut bytes = fs::read(&path).expect("a manifest");
    bytes[at..at + to.len()].copy_from_slice(to);
    let check = xxh3_64(&bytes[..4088]);
    bytes[4088..].copy_from_slice(&check.to_le_bytes());
    fs::write(&path, &bytes).expect("a manifest");
}

/// Returns a closed folder with one item.
fn closed() -> Case {
    let case = Case::new();
    let (mut tier, _) = case.open();
    tier.append(&Item::new(1, 100).record()).expect("appended");
    tier.close().expect("closed");
    case
}

/// Returns a folder with one item whose process died.
fn died() -> Case {
    let case = Case::new();
    let (mut tier, _) = case.open();
    tier.append(&Item::new(1, 100).record()).expect("appended");
    tier.flush().expect("flushed");
    drop(tier);
    case
}

#[test]
fn a_file_in_place_of_the_folder_is_refused() {
    let case = Case::new();
    fs::write(case.path(), "text").expect("a file");
    for error in [
        open_error(&case),
        stat(case.path(), 0).expect_err("a file"),
        verify(case.path(), |_, _| ()).expect_err("a file"),
    ] {
        assert!(matches!(error, Error::NotAFolder { .. }), "{error}");
    }
}

#[test]
fn the_folder_of_a_running_process_is_refused_with_its_pid() {
    let case = Case::new();
    let (tier, _) = case.open();
    for error in [open_error(&case), stat(case.path(), 0).expect_err("in use")] {
        let expected = format!("process {} uses this folder", std::process::id());
        assert!(error.to_string().contains(&expected), "{error}");
    }
    drop(tier);
    case.open();
}

#[test]
fn another_version_is_refused_and_nothing_is_changed() {
    let case = closed();
    change_manifest(&case, 8, &[2, 0, 0, 0]);
    let before = fs::read(&case.item_files()[0]).expect("a file");
    for error in [open_error(&case), stat(case.path(), 0).expect_err("a version")] {
        assert!(matches!(error, Error::Version { expected: 1, found: 2, .. }), "{error}");
    }
    assert_eq!(fs::read(&case.item_files()[0]).expect("a file"), before);
}

#[test]
fn a_damaged_or_missing_manifest_is_refused() {
    for damage in ["cut", "flipped", "missing", "state"] {
        let case = closed();
        let path = case.path().join("tier");
        let mut bytes = fs::read(&path).expect("a manifest");
        bytes[100] ^= 1;
        match damage {
            "cut" => fs::write(&path, &bytes[..4000]).expect("a manifest"),
            "flipped" => fs::write(&path, &bytes).expect("a manifest"),
            "state" => change_manifest(&case, 12, &[4, 0, 0, 0]),
            _ => fs::remove_file(&path).expect("removed"),
        }
        for error in [open_error(&case), stat(case.path(), 0).expect_err("damaged")] {
            assert!(matches!(error, Error::Manifest { .. }), "{damage}: {error}");
            assert!(error.to_string().contains("remove the folder"), "{error}");
        }
        assert_eq!(case.item_files().len(), 1, "no item file is removed");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let case = closed();
    fs::set_permissions(case.path(), fs::Permissions::from_mode(0o500)).expect("read-only");
    match Tier::open(case.path(), &small()) {
        Err(Error::ReadOnly { .. }) => {
            assert_eq!(stat(case.path(), 0).expect("statistics").records, 1);
        }
        // Root may write anyway.
        Ok((tier, _)) => assert_eq!(load(&tier.reader()).len(), 1),
        Err(error) => panic!("{error}"),
    }
    fs::set_permissions(case.path(), fs::Permissions::from_mode(0o700)).expect("writable");
}

#[test]
fn options_out_of_range_are_refused() {
    let case = Case::new();
    for (option, options) in [
        ("file_len", Options { file_len: 100, ..small() }),
        ("file_len", Options { file_len: (64 << 10) + 1, ..small() }),
        ("batch_len", Options { batch_len: 64 << 10, ..small() }),
        ("max_bytes", Options { max_bytes: 128 << 10, ..small() }),
    ] {
        let error = Tier::open(case.path(), &options).expect_err("out of range").to_string();
        assert!(error.starts_with(option), "{error}");
    }
    for max_bytes in [1 << 20, 100 << 20, 10 << 30, 1 << 50] {
        let options = Options::new(max_bytes);
        assert!(options.batch_len as u64 <= options.file_len / 4, "{options:?}");
    }
    assert!(!case.path().exists());
}

#[test]
fn a_folder_and_its_files_are_private_whatever_the_umask_is() {
    const FOLDER: &str = "NUTHATCH_TEST_TIER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let (mut tier, _) = Tier::open(folder, &small()).expect("a tier");
        tier.append(&Item::new(1, 100).record()).expect("appended");
        tier.removals().expect("a log");
        return tier.close().expect("closed");
    }
    for umask in ["000", "022", "277"] {
        let case = Case::new();
        let name = "opening::a_folder_and_its_files_are_private_whatever_the_umask_is";
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask} && exec \"$0\" --exact {name}")]);
        command.arg(std::env::current_exe().expect("this program")).env(FOLDER, case.path());
        assert!(command.output().expect("a child").status.success(), "umask {umask}");
        assert_eq!(mode(&case.path()), 0o700, "umask {umask}");
        for entry in fs::read_dir(case.path()).expect("a folder") {
            let path = entry.expect("an entry").path();
            assert_eq!(mode(&path), 0o600, "umask {umask}: {}", path.display());
        }
    }
}

#[test]
fn the_seed_of_hashes_belongs_to_the_folder() {
    let case = Case::new();
    let options = Options { hash_seed: Some(7), ..small() };
    let (tier, _) = Tier::open(case.path(), &options).expect("a tier");
    assert_eq!(tier.hash_seed(), 7);
    drop(tier);
    let options = Options { hash_seed: Some(8), ..small() };
    let (tier, _) = Tier::open(case.path(), &options).expect("a tier");
    assert_eq!(tier.hash_seed(), 7);
    assert_ne!(Case::new().open().0.hash_seed(), Case::new().open().0.hash_seed());
}

#[test]
fn a_loss_of_power_is_reported_until_the_caller_has_decided() {
    let case = died();
    change_manifest(&case, 32, &[1, 2, 3, 4, 5, 6, 7, 8]);
    for _ in 0..2 {
        let (tier, recovery) = case.open();
        assert!(recovery.state == FolderState::LostPower);
        assert_eq!(load(&tier.reader()).len(), 1);
        // Closing is no decision.
        tier.close().expect("closed");
        assert_eq!(stat(case.path(), 0).expect("statistics").state, FolderState::LostPower);
    }
    let (mut tier, _) = case.open();
    tier.clear().expect("cleared");
    assert_eq!(load(&tier.reader()), []);
    tier.append(&Item::new(2, 100).record()).expect("appended");
    tier.flush().expect("flushed");
    drop(tier);
    let (tier, recovery) = case.open();
    assert!(recovery.state == FolderState::NotClosed);
    assert_eq!(load(&tier.reader()), [Item::new(2, 100)]);
}

#[test]
fn outdated_records_are_reported_until_they_are_removed() {
    let case = closed();
    let (mut tier, _) = case.open();
    tier.mark_outdated().expect("marked");
    drop(tier);
    for _ in 0..2 {
        let (tier, recovery) = case.open();
        assert!(recovery.state == FolderState::Outdated);
        assert_eq!(load(&tier.reader()).len(), 1);
        tier.close().expect("closed");
        assert_eq!(stat(case.path(), 0).expect("statistics").state, FolderState::Outdated);
    }
    let (mut tier, _) = case.open();
    tier.clear().expect("cleared");
    tier.append(&Item::new(2, 100).record()).expect("appended");
    tier.close().expect("closed");
    let (tier, recovery) = case.open();
    assert!(recovery.state == FolderState::Closed);
    assert_eq!(load(&tier.reader()), [Item::new(2, 100)]);
}

#[test]
fn the_removal_log_is_removed_after_a_loss_of_power() {
    let case = died();
    let (tier, _) = case.open();
    let removals = tier.removals().expect("a log");
    removals.append_all().expect("removed");
    drop(tier);
    change_manifest(&case, 32, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let (mut tier, recovery) = case.open();
    assert!(recovery.state == FolderState::LostPower && recovery.removed.in_file(1).is_empty());
    assert_eq!(log_files(&case.path()).len(), 0);
    let removals = tier.removals().expect("a log");
    removals.append_all().expect("removed");
    tier.clear().expect("cleared");
    let place = tier.append(&Item::new(2, 100).record()).expect("appended");
    tier.append(&Item::new(3, 100).record()).expect("appended");
    tier.flush().expect("flushed");
    let id = tier.reader().record_id(place).expect("a file");
    removals.append(&[id]).expect("removed");
    drop(tier);
    let (tier, recovery) = case.open();
    assert!(recovery.state == FolderState::NotClosed);
    assert_eq!(live(&tier.reader(), &recovery.removed), [Item::new(3, 100)]);
}

#[test]
fn a_restart_of_the_system_after_closing_loses_nothing() {
    let case = closed();
    change_manifest(&case, 32, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let (tier, recovery) = case.open();
    assert!(recovery.state == FolderState::Closed);
    assert_eq!(load(&tier.reader()), [Item::new(1, 100)]);
}

#[test]
fn a_lower_budget_removes_the_oldest_files_and_other_files_count() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    for number in 0..100 {
        tier.append(&Item::new(number, 5000).record()).expect("appended");
    }
    tier.close().expect("closed");
    fs::write(case.path().join("note.txt"), vec![0; 100_000]).expect("another file");
    let options = Options { max_bytes: 400 << 10, ..small() };
    let (tier, recovery) = Tier::open(case.path(), &options).expect("a tier");
    assert!(recovery.removed_files > 4, "{recovery:?}");
    assert!(tier.used_bytes() <= 400 << 10 && tier.used_bytes() > 300 << 10);
    let found = load(&tier.reader());
    assert_eq!(recovery.records, found.len() as u64);
    assert_eq!(found.last(), Some(&Item::new(99, 5000)), "the newest ones are kept");
    assert!(case.path().join("note.txt").exists());
}

#[test]
fn a_folder_has_statistics_while_it_is_at_rest() {
    let case = died();
    let before = fs::read(&case.item_files()[0]).expect("a file");
    let found = stat(case.path(), crate::NOW_MS).expect("statistics");
    assert!(found.state == FolderState::NotClosed);
    assert_eq!((found.files, found.sealed_files, found.records, found.expired), (1, 0, 1, 0));
    assert_eq!((found.oldest_ms, found.newest_ms), (Some(crate::NOW_MS), Some(crate::NOW_MS)));
    let verified = verify(case.path(), |done, total| assert!(done <= total)).expect("verified");
    assert_eq!((verified.records, verified.damage.len(), verified.unreadable.len()), (1, 0, 0));
    assert_eq!(fs::read(&case.item_files()[0]).expect("a file"), before, "nothing is changed");

    let (mut tier, _) = case.open();
    let item = Item { expires_ms: Some(crate::NOW_MS - 5000), ..Item::new(2, 10) };
    tier.append(&item.record()).expect("appended");
    tier.close().expect("closed");
    let found = stat(case.path(), crate::NOW_MS + 1000).expect("statistics");
    assert!(found.state == FolderState::Closed);
    assert_eq!((found.files, found.sealed_files, found.records, found.expired), (2, 2, 2, 1));
    assert_eq!(found.record_bytes, 144 + 48);
}
