//! Tests of failed system calls: errors name the file, and no temporary file remains.

use nuthatch_snapshot::{Error, Snapshot, Value, WriterOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

type AnyResult = Result<(), Box<dyn std::error::Error>>;

/// The environment variable with the path and the number of values of the child.
const CHILD: &str = "NUTHATCH_TEST_BUILD_LARGE";

/// Maximum length of a file that the child can write, in bytes.
const LARGEST_FILE: usize = 1 << 20;

fn build(path: &Path, values: usize) -> nuthatch_snapshot::Result<()> {
    let mut writer = WriterOptions::new().memory(16 << 20).threads(2).create(path)?;
    let mut value = vec![0; 1000];
    for i in 0..values {
        value[..8].copy_from_slice(&i.to_le_bytes());
        writer.insert(format!("key {i}").as_bytes(), Value::Bytes(&value))?;
    }
    writer.finish()?;
    Ok(())
}

/// Returns the kind of the system error. Panics if the result is another or names another path.
#[track_caller]
fn kind<T>(result: nuthatch_snapshot::Result<T>, path: &Path) -> ErrorKind {
    match result {
        Err(Error::Io(error)) => {
            assert_eq!(error.path, path);
            error.source.kind()
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("an error"),
    }
}

/// The child process of the test below, with a file size limit. Does nothing otherwise.
#[test]
fn child() {
    let Some(what) = std::env::var_os(CHILD) else { return };
    let what = what.into_string().expect("UTF-8");
    let (values, path) = what.split_once(':').expect("a number and a path");
    let result = build(Path::new(path), values.parse().expect("a number"));
    let kind = match &result {
        Err(Error::Io(error)) => error.source.kind(),
        other => panic!("an error of the system, not {other:?}"),
    };
    assert_eq!(kind, ErrorKind::FileTooLarge, "{result:?}");
    println!("error={}", result.expect_err("checked above"));
}

/// A file size limit simulates a full disk. The values stay in memory or are spilled.
#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() -> AnyResult {
    for (values, file) in [(3000, "full.nut: write: "), (50_000, ": write a temporary file: ")] {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("full.nut");
        std::fs::write(&path, "what was there before")?;
        // The unit of `ulimit -f` is 512 bytes. An ignored signal stays ignored after exec.
        let limited = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", LARGEST_FILE / 512);
        let child = Command::new("sh")
            .args(["-c", &limited])
            .arg(std::env::current_exe()?)
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, format!("{values}:{}", path.display()))
            .output()?;
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{output}{}", String::from_utf8_lossy(&child.stderr));
        let error = output.lines().find_map(|line| line.split_once("error="));
        assert!(error.is_some_and(|(_, error)| error.contains(file)), "{output}");
        assert_eq!(std::fs::read(&path)?, b"what was there before");
        assert_eq!(std::fs::read_dir(directory.path())?.count(), 1);
    }
    Ok(())
}

#[test]
fn a_directory_is_neither_built_over_nor_opened() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("taken.nut");
    std::fs::create_dir(&path)?;
    assert_eq!(kind(WriterOptions::new().create(&path), &path), ErrorKind::IsADirectory);
    assert_eq!(kind(Snapshot::open(&path), &path), ErrorKind::InvalidInput);
    let Err(error) = Snapshot::open(&path) else { panic!("an error") };
    assert_eq!(error.to_string(), format!("{}: open: not a regular file", path.display()));
    assert_eq!(std::fs::read_dir(directory.path())?.count(), 1);
    Ok(())
}

/// Opening a named pipe without a writer would block forever.
#[test]
fn a_pipe_is_not_opened() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("pipe.nut");
    assert!(Command::new("mkfifo").arg(&path).status()?.success());
    assert_eq!(kind(Snapshot::open(&path), &path), ErrorKind::InvalidInput);
    Ok(())
}

#[test]
fn what_is_missing_is_named() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("missing/users.nut");
    assert_eq!(kind(Snapshot::open(&path), &path), ErrorKind::NotFound);
    let Err(Error::Io(error)) = build(&path, 1) else { panic!("an error") };
    assert_eq!(error.source.kind(), ErrorKind::NotFound);
    assert_eq!(error.path.parent(), path.parent());
    for folder in ["/", ".", "..", "missing/", "missing/."] {
        let folder = Path::new(folder);
        assert_eq!(kind(build(folder, 1), folder), ErrorKind::InvalidInput, "{folder:?}");
    }
    Ok(())
}

/// The superuser can write to any folder except those of the kernel.
#[test]
fn a_folder_without_permission_is_named() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let is_super_user = std::fs::metadata("/proc/self")?.uid() == 0;
    let refusing = if is_super_user { Path::new("/proc") } else { directory.path() };
    if !is_super_user {
        std::fs::set_permissions(refusing, std::fs::Permissions::from_mode(0o555))?;
    }
    let Err(Error::Io(error)) = build(&refusing.join("users.nut"), 1) else { panic!("an error") };
    assert_eq!(error.path.parent(), Some(refusing));
    assert_eq!(error.operation, "create a temporary file");
    Ok(())
}

/// Changes of padding, which no checksum covers, do not change entries.
#[test]
fn an_iterator_that_verifies_finds_every_changed_byte_of_an_entry() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("whole.nut");
    build(&path, 20)?;
    let bytes = std::fs::read(&path)?;
    let read = |bytes: &[u8]| -> nuthatch_snapshot::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let snapshot = Snapshot::from_bytes(bytes)?;
        let entries = snapshot.iter_verified()?.map(|entry| {
            let entry = entry?;
            Ok((entry.key.to_vec(), entry.value.bytes().to_vec()))
        });
        entries.collect()
    };
    let whole = read(&bytes)?;
    assert_eq!(whole.len(), 20);
    let mut errors = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        match read(&damaged) {
            Ok(entries) => assert_eq!(entries, whole, "byte {at}"),
            Err(_) => errors += 1,
        }
    }
    assert!(errors > 20_000, "{errors} of {}", bytes.len());
    Ok(())
}

#[test]
fn an_iterator_that_verifies_ends_after_an_error() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("whole.nut");
    build(&path, 40_000)?;
    let mut bytes = std::fs::read(&path)?;
    let last = bytes.windows(3).rposition(|window| window != [0; 3]).expect("data");
    bytes[last] ^= 1;
    let snapshot = Snapshot::from_bytes(&bytes)?;
    assert!(snapshot.stats().partitions > 1);
    let mut entries = snapshot.iter_verified()?;
    let whole = entries.by_ref().take_while(Result::is_ok).count();
    assert!(whole > 0 && whole < 40_000, "{whole}");
    assert!(entries.next().is_none());
    Ok(())
}

/// The format page specifies the order: the zeros between the sections, then the metadata.
#[test]
fn verification_reports_damage_before_the_metadata_first() -> AnyResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.nut");
    let mut writer = WriterOptions::new().create(&path)?;
    writer.insert(b"key", Value::I64(1))?;
    writer.set_metadata("name", b"value")?;
    writer.finish()?;
    let mut bytes = std::fs::read(&path)?;
    // The directory of one partition ends at 544, and the index begins at 576.
    bytes[550] = 1;
    *bytes.last_mut().expect("the metadata") ^= 1;
    let Err(Error::Corrupt(damage)) = Snapshot::from_bytes(&bytes)?.verify() else {
        panic!("damage")
    };
    assert_eq!(damage.offset, 550);
    bytes[550] = 0;
    let Err(Error::Corrupt(damage)) = Snapshot::from_bytes(&bytes)?.verify() else {
        panic!("damage")
    };
    assert!(damage.expected.contains("metadata") || damage.expected.contains("section 0"));
    Ok(())
}

#[test]
#[should_panic(expected = "the batch is from another writer")]
fn a_batch_of_another_writer_is_not_appended() {
    let folder = tempfile::tempdir().expect("a folder");
    let create = |name: &str, seed| {
        WriterOptions::new().seed(seed).create(folder.path().join(name)).expect("a writer")
    };
    let (mut one, other) = (create("one.nut", 1), create("other.nut", 2));
    let mut batch = other.batch();
    batch.push(b"key", Value::I64(1)).expect("a row");
    let _ = one.append(batch);
}

#[test]
fn a_rejected_row_does_not_change_the_writer() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("refused.nut");
    let mut writer = WriterOptions::new().create(&path)?;
    writer.insert(b"before", Value::I64(1))?;
    let Err(Error::Limit(limit)) = writer.insert(&vec![b'k'; 65_536], Value::I64(2)) else {
        panic!("a limit")
    };
    assert_eq!((limit.max, limit.found), (65_535, 65_536));
    // Untouched zero pages take no memory.
    let longer = vec![0; (1 << 32) + 1];
    let Err(Error::Limit(limit)) = writer.insert(b"too long", Value::Bytes(&longer)) else {
        panic!("a limit")
    };
    assert_eq!((limit.max, limit.found), (1 << 32, (1 << 32) + 1));
    writer.insert(b"after", Value::I64(3))?;
    assert_eq!(writer.finish()?.rows, 2);
    let snapshot = Snapshot::open(&path)?;
    snapshot.verify()?;
    assert_eq!((snapshot.get_i64(b"before")?, snapshot.get_i64(b"after")?), (Some(1), Some(3)));
    assert!(!snapshot.contains(b"too long")?);
    Ok(())
}
