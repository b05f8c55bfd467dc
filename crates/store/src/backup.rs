//! Copies of a store: made while others write, or in its place.

use crate::environment::{Environment, open_alone};
use crate::error::{Error, Result};
use crate::file::{DATA, resolve_folder};
use crate::lock_file::StoreLock;
use crate::store::Store;
use crate::verify::verify_closed;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The name of a copy that is not whole yet.
const PARTIAL: &str = "data.mdb.partial";

/// What `compact` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Bytes of the file before.
    pub before_bytes: u64,
    /// Bytes of the file now.
    pub after_bytes: u64,
}

impl Store {
    /// Makes a copy of the store in a folder, which is made if it is not there, while others read
    /// and write: the state of one moment. `compact` leaves free pages out, and takes longer. The
    /// copy is a store of its own, and appears when it is whole. A folder that has a store is
    /// refused.
    ///
    /// All pages are verified before they are copied, so the file is read twice.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the store is damaged; there is no copy then.
    pub fn backup(&self, folder: impl AsRef<Path>, compact: bool) -> Result<()> {
        let folder = folder.as_ref();
        self.verify(|_, _| ())?;
        match fs::create_dir(folder) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io(folder, "create the folder", e)),
        }
        let target = folder.join(DATA);
        if target.exists() {
            let exists = std::io::ErrorKind::AlreadyExists.into();
            return Err(Error::io(&target, "back up", exists));
        }
        let partial = Partial::create(folder)?;
        self.0.environment.copy(&partial.file, compact)?;
        partial.publish(&target)
    }

    /// Writes a copy of the store to a file, a pipe or a socket, as [`backup`](Self::backup) does.
    pub fn backup_to(&self, file: &File, compact: bool) -> Result<()> {
        self.verify(|_, _| ())?;
        self.0.environment.copy(file, compact)
    }
}

/// Makes the store in a folder as small as it can be, in its place. No process may have it open,
/// and none can open it for writing meanwhile. When this fails the store is as it was.
///
/// All pages are verified before they are copied, so the file is read twice.
///
/// # Errors
///
/// [`Error::Corrupt`] if the store is damaged, and [`Error::InUse`] if a process has it open.
pub fn compact(folder: impl AsRef<Path>) -> Result<Compacted> {
    let folder = resolve_folder(folder.as_ref())?;
    let data = folder.join(DATA);
    let len =
        |act| fs::metadata(&data).map(|meta| meta.len()).map_err(|e| Error::io(&data, act, e));
    let before_bytes = len("open")?;
    let (_registration, _lock) = StoreLock::exclusive(&folder)?;
    // LMDB copies what it finds, damage included.
    verify_closed(&folder, |_, _| ())?;
    let partial = Partial::create(&folder)?;
    let environment = open_alone(&folder)?;
    Environment::copy_of(&environment, &data, &partial.file, true)?;
    drop(environment);
    partial.publish(&data)?;
    Ok(Compacted { before_bytes, after_bytes: len("compact")? })
}

/// A copy that is not whole yet. It goes when it is dropped.
struct Partial {
    path: PathBuf,
    file: File,
}

impl Partial {
    fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(PARTIAL);
        let open = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = open.map_err(|e| Error::io(&path, "create", e))?;
        Ok(Self { path, file })
    }

    fn publish(self, target: &Path) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io(&self.path, "sync", e))?;
        fs::rename(&self.path, target).map_err(|e| Error::io(target, "rename", e))?;
        let folder = target.parent().unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| Error::io(folder, "sync", e))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After it was published there is no such file any more.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::layout::{META_PAGES, meta};
    use crate::file::u64_at;
    use crate::{Options, Store};

    #[test]
    fn a_store_with_lost_pages_is_whole_but_is_not_compacted() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), &Options::new()).expect("a store");
        let table = store.table("t").expect("a table");
        store.put(&table, b"key", b"value").expect("a row");
        assert!(store.close_within(std::time::Duration::from_mins(10)));
        // One more page, which is in no table and not free.
        let path = folder.path().join(DATA);
        let mut bytes = fs::read(&path).expect("the file");
        let page_size = crate::file::meta::read(&File::open(&path).expect("open"), &path, None);
        let page_size = page_size.expect("read").expect("a meta page").page_size as usize;
        let mut end = 0;
        for page in 0..META_PAGES as usize {
            let at = page * page_size + meta::LAST_PAGE;
            let last = u64_at(&bytes, at) + 1;
            bytes[at..at + 8].copy_from_slice(&last.to_le_bytes());
            end = end.max((last as usize + 1) * page_size);
        }
        bytes.resize(bytes.len().max(end), 0);
        fs::write(&path, &bytes).expect("a changed file");

        let verified = verify_closed(folder.path(), |_, _| ()).expect("no damage");
        assert_eq!(verified.lost_pages, 1, "{verified:?}");
        let error = compact(folder.path()).expect_err("LMDB does not compact it");
        assert_eq!(error.code(), "lmdb", "{error}");
        assert_eq!(fs::read(&path).expect("the file"), bytes, "the store is as it was");
    }
}
