//! The file of an empty store: two meta pages as LMDB writes them.
//!
//! LMDB creates an empty file and fills it afterwards, so an empty file could be a store that
//! another process is creating, or a truncated one. Here the file is renamed into place when it is
//! complete, so an empty file is damage.

use super::layout::{MAGIC, META_PAGES, NO_PAGE, VERSION, meta as at, page_header, tree_record};
use crate::error::{Error, Result};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest page that LMDB uses.
const MAX_PAGE_SIZE: usize = 32 << 10;

/// Creates the file of an empty store, unless another process or thread creates it meanwhile.
pub(crate) fn create(path: &Path, map_size: u64) -> Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Unique among processes and threads.
    let suffix = format!("mdb.new.{}.{number}", std::process::id());
    let partial = path.with_extension(suffix);
    let page_size = rustix::param::page_size().min(MAX_PAGE_SIZE);
    let made = write(&partial, &first_pages(page_size, map_size))
        // Opened before the rename: if this fails, nothing is published.
        .and_then(|()| File::open(folder_of(path)))
        .and_then(|folder| rename_unless_there(&partial, path).map(|()| folder))
        .and_then(|folder| folder.sync_all());
    if made.is_err() {
        // Also if another process or thread was first.
        let _ = fs::remove_file(&partial);
    }
    match made {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(|e| {
            let source = io::Error::new(e.kind(), format!("by way of {}: {e}", partial.display()));
            Error::io(path, "create", source)
        }),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // LMDB creates its files with the same permissions.
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn rename_unless_there(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some filesystems do not support the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        renamed => Ok(renamed?),
    }
}

/// Returns the two meta pages of a store without rows.
fn first_pages(page_size: usize, map_size: u64) -> Vec<u8> {
    let mut bytes = vec![0; page_size * META_PAGES as usize];
    for (number, meta) in (0_u64..).zip(bytes.chunks_exact_mut(page_size)) {
        let mut put = |at: usize, field: &[u8]| meta[at..at + field.len()].copy_from_slice(field);
        put(page_header::NUMBER, &number.to_le_bytes());
        put(page_header::FLAGS, &page_header::META.to_le_bytes());
        put(at::MAGIC, &MAGIC.to_le_bytes());
        put(at::VERSION, &VERSION.to_le_bytes());
        put(at::MAP_SIZE, &map_size.to_le_bytes());
        put(at::FREE_TREE + tree_record::PADDING, &(page_size as u32).to_le_bytes());
        put(at::FREE_TREE + tree_record::FLAGS, &tree_record::INTEGER_KEYS.to_le_bytes());
        for tree_at in [at::FREE_TREE, at::MAIN_TREE] {
            put(tree_at + tree_record::ROOT, &NO_PAGE.to_le_bytes());
        }
        put(at::LAST_PAGE, &(META_PAGES - 1).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pages_are_those_of_lmdb() {
        let folder = tempfile::tempdir().expect("a folder");
        let (ours, map_size) = (folder.path().join("ours"), 1 << 20);
        create(&ours, map_size).expect("a file");
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(map_size as usize);
        let theirs = folder.path().join("theirs");
        fs::create_dir(&theirs).expect("a folder");
        crate::environment::open::open_for_test(&options, &theirs);
        let theirs = fs::read(theirs.join("data.mdb")).expect("bytes");
        assert_eq!(fs::read(&ours).expect("bytes"), theirs);
        // A second call changes nothing and leaves no other file.
        create(&ours, 2 << 20).expect("the file is there");
        assert_eq!(fs::read(&ours).expect("bytes"), theirs);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn threads_that_create_a_store_at_once_all_find_it_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        for round in 0..20 {
            let path = folder.path().join(round.to_string());
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        create(&path, 1 << 20).expect("the file is there");
                        let bytes = fs::read(&path).expect("bytes");
                        assert_eq!(bytes, first_pages(bytes.len() / 2, 1 << 20));
                    });
                }
            });
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 20);
    }
}
