//! Tests of replacing a file: its mode is kept, symbolic links are followed, other kinds are
//! rejected.

use nuthatch_snapshot::layout::header;
use nuthatch_snapshot::{Error, Snapshot, Value, Writer, WriterOptions};
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn build(path: &Path) -> nuthatch_snapshot::Result<()> {
    let mut writer = Writer::create(path)?;
    writer.insert(b"key", Value::I64(1))?;
    writer.finish()?;
    assert_eq!(Snapshot::open(path)?.get_i64(b"key")?, Some(1));
    Ok(())
}

#[test]
fn a_symbolic_link_is_kept_and_its_target_is_replaced() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let (first, other) = (directory.path().join("first"), directory.path().join("other"));
    fs::create_dir(&first)?;
    fs::create_dir(&other)?;
    let target = other.join("target.nut");
    symlink("../other/middle.nut", first.join("link.nut"))?;
    symlink("target.nut", other.join("middle.nut"))?;
    // First without a file at the path, then with one.
    for _ in 0..2 {
        build(&first.join("link.nut"))?;
        assert!(first.join("link.nut").symlink_metadata()?.is_symlink());
        assert!(other.join("middle.nut").symlink_metadata()?.is_symlink());
        assert!(target.symlink_metadata()?.is_file());
        assert_eq!(fs::read_dir(&first)?.count(), 1, "temporary files lie beside the target");
    }
    symlink("loop.nut", first.join("loop.nut"))?;
    assert!(build(&first.join("loop.nut")).is_err());
    Ok(())
}

#[test]
fn devices_pipes_and_sockets_are_rejected_and_unchanged() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let [pipe, socket, link] = ["pipe", "socket", "link"].map(|name| directory.path().join(name));
    assert!(Command::new("mkfifo").arg(&pipe).status()?.success());
    let _listener = UnixListener::bind(&socket)?;
    symlink("/dev/null", &link)?;
    for path in [&pipe, &socket, &link, Path::new("/dev/null")] {
        let Err(Error::Io(error)) = build(path) else { panic!("{}", path.display()) };
        assert_eq!(error.source.kind(), ErrorKind::InvalidInput, "{error:?}");
        assert!(!path.metadata()?.is_file(), "{}", path.display());
    }
    assert_eq!(fs::read_dir(directory.path())?.count(), 3);
    Ok(())
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode_and_owner() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("private.nut");
    for mode in [0o600, 0o444, 0o640, 0o777] {
        fs::write(&path, "old")?;
        let is_super_user = fs::metadata("/proc/self")?.uid() == 0;
        if is_super_user {
            std::os::unix::fs::chown(&path, Some(12_345), Some(54_321))?;
        }
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        let old = fs::metadata(&path)?;
        let writer = WriterOptions::new().create(&path)?;
        for entry in fs::read_dir(directory.path())? {
            // The new file is private while it is written, too.
            assert_eq!(entry?.metadata()?.mode() & 0o7777, mode);
        }
        writer.finish()?;
        let new = fs::metadata(&path)?;
        assert_eq!((new.mode(), new.uid(), new.gid()), (old.mode(), old.uid(), old.gid()));
        fs::remove_file(&path)?;
    }
    Ok(())
}

#[test]
fn a_file_without_a_name_is_returned_and_leaves_nothing() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let mut writer = WriterOptions::new().create_unnamed(directory.path())?;
    writer.insert(b"key", Value::I64(1))?;
    let (summary, mut file) = writer.finish_file()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    assert_eq!(bytes.len() as u64, summary.file_len);
    assert_eq!(Snapshot::from_bytes(&bytes)?.get_i64(b"key")?, Some(1));
    assert_eq!(fs::read_dir(directory.path())?.count(), 0);
    let Err(Error::Io(_)) = WriterOptions::new().create_unnamed(directory.path())?.finish() else {
        panic!("a file without a name cannot be published")
    };
    Ok(())
}

/// In errors, the value in the file is `expected` and the computed value is `found`.
#[test]
fn errors_of_checksums_and_lengths_expect_the_stored_numbers() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("damaged.nut");
    build(&path)?;
    let good = fs::read(&path)?;
    let stored =
        |at: usize| -> AnyResult<u64> { Ok(u64::from_le_bytes(good[at..at + 8].try_into()?)) };
    let damage_of = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        match Snapshot::from_bytes(&bytes).and_then(|snapshot| snapshot.verify()) {
            Err(Error::Corrupt(damage)) => *damage,
            other => panic!("{other:?}"),
        }
    };
    // The checksum of the header covers the seed. The directory begins at 512.
    for (at, checksum, what) in [(24, 504, "the header"), (512, 128, "the directory")] {
        let damage = damage_of(at);
        let expected = format!("the stored checksum {:016x} of {what}", stored(checksum)?);
        assert_eq!((damage.offset, damage.expected), (checksum as u64, expected));
        assert_ne!(damage.found, format!("{:016x}", stored(checksum)?));
    }
    let Err(Error::Corrupt(damage)) = Snapshot::from_bytes(&good[..good.len() - 64]) else {
        panic!("a length")
    };
    assert_eq!(damage.expected, format!("the file length to be {}", good.len()));
    assert_eq!(damage.found, (good.len() - 64).to_string());
    Ok(())
}

/// The header's lengths of the directory, the index and the data used to be printed as `found`.
#[test]
fn errors_of_section_lengths_expect_the_numbers_of_the_header() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("damaged.nut");
    let mut writer = Writer::create(&path)?;
    for key in 0..100_u8 {
        writer.insert(&[key], Value::Bytes(&[key; 20]))?;
    }
    writer.finish()?;
    let good = fs::read(&path)?;
    let lens = [
        (header::DIRECTORY + 8, "directory", 64),
        (header::INDEX + 8, "index", 64),
        // The data ends with the file.
        (header::DATA + 8, "data", -64),
    ];
    for (field, what, change) in lens {
        let computed = u64::from_le_bytes(good[field..field + 8].try_into()?);
        let stored = computed.wrapping_add_signed(change);
        let mut bytes = good.clone();
        bytes[field..field + 8].copy_from_slice(&stored.to_le_bytes());
        let hash = xxh3_64(&bytes[..header::HASH]);
        bytes[header::HASH..header::LEN].copy_from_slice(&hash.to_le_bytes());
        let Err(Error::Corrupt(damage)) = Snapshot::from_bytes(&bytes) else {
            panic!("the length of the {what}")
        };
        assert_eq!(damage.offset, field as u64);
        assert_eq!(damage.expected, format!("the stored length {stored} of the {what}"));
        assert_eq!(damage.found, format!("{computed} from the other fields"));
    }
    Ok(())
}

/// A staged snapshot can be read, and replaces the old one only when it is published.
#[test]
fn a_staged_snapshot_is_published_or_removed() -> AnyResult {
    for shards in [0, 3] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.nut");
        let names = || std::fs::read_dir(folder.path()).expect("a folder").count();
        let stage = |value: i64| -> nuthatch_snapshot::Result<nuthatch_snapshot::Staged> {
            let mut writer = WriterOptions::new().shards(shards).create(&path)?;
            for key in 0..100_u8 {
                writer.insert(&[key], Value::I64(value))?;
            }
            writer.stage()
        };
        stage(1)?.publish()?;
        let before = names();
        let staged = stage(2)?;
        assert_eq!(staged.summary().entries, 100);
        assert_eq!(Snapshot::open(staged.path())?.get_i64(&[7])?, Some(2));
        assert_eq!(Snapshot::open(&path)?.get_i64(&[7])?, Some(1));
        drop(staged);
        assert_eq!((names(), Snapshot::open(&path)?.get_i64(&[7])?), (before, Some(1)));
        stage(2)?.publish()?;
        assert_eq!((names(), Snapshot::open(&path)?.get_i64(&[7])?), (before, Some(2)));
    }
    Ok(())
}
