//! Backups and compaction of a store.

use crate::environment::Environment;
use crate::environment::lock_file::StoreLock;
use crate::environment::network;
use crate::environment::open::open_without_locks;
use crate::error::{Error, Result};
use crate::file::resolve_folder;
use crate::file::walk::{Verified, verify_closed};
use crate::file_names::DATA;
use crate::options::Options;
use crate::store::Store;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// The file name of an incomplete copy.
const PARTIAL: &str = "data.mdb.partial";

/// The result of [`compact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Length of the file before, in bytes.
    pub before_bytes: u64,
    /// Length of the file after, in bytes.
    pub after_bytes: u64,
}

impl Store {
    /// Copies one state of the store to `folder`, while other threads and processes read and write.
    /// Creates the folder if it does not exist; its parent must exist. If `compact` is true, omits
    /// free pages, which takes longer.
    ///
    /// The copy is an independent store. It becomes visible when it is complete and synced. Only
    /// the user of this process can read it: its mode is 0600.
    ///
    /// All pages are verified before they are copied, so the file is read twice.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the folder has a store already or cannot be written, [`Error::Corrupt`] if
    /// the store is damaged, and [`Error::Lmdb`] if `compact` is true and the file has lost pages:
    /// see [`Verified::lost_pages`]. An incomplete copy is removed.
    pub fn backup(&self, folder: impl AsRef<Path>, compact: bool) -> Result<()> {
        let folder = folder.as_ref();
        let target = folder.join(DATA);
        self.check_no_store_at(folder, &target)?;
        self.check_whole("back up", compact)?;
        match fs::create_dir(folder) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io(folder, "create the folder", e)),
        }
        let partial = Partial::create(folder)?;
        self.0.environment.copy(&partial.file, &partial.path, compact)?;
        partial.publish(&target)
    }

    /// Returns an error if the target folder has a store, this one or another.
    fn check_no_store_at(&self, folder: &Path, target: &Path) -> Result<()> {
        let Ok(there) = fs::metadata(target) else { return Ok(()) };
        let own = fs::metadata(self.0.data().1).ok();
        let is_own = own.is_some_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()));
        let found = if is_own { "that of the store itself" } else { "one" };
        let message = format!("expected a folder without {DATA} for the copy, found {found}");
        let exists = io::Error::new(io::ErrorKind::AlreadyExists, message);
        Err(Error::io(folder, "back up", exists))
    }

    /// Writes a copy of one state of the store to a file, a pipe or a socket, as
    /// [`backup`](Self::backup) does. Does not sync it.
    ///
    /// # Errors
    ///
    /// As for [`backup`](Self::backup). A part of the copy may have been written.
    pub fn backup_to(&self, file: &File, compact: bool) -> Result<()> {
        self.check_whole("back up", compact)?;
        self.0.environment.copy(file, Path::new("<destination>"), compact)
    }

    /// Verifies all pages. If `compact` is set, also checks that LMDB can leave out the free ones.
    fn check_whole(&self, operation: &'static str, compact: bool) -> Result<()> {
        let verified = self.verify(|_, _| ())?;
        if compact { check_no_lost_pages(&verified, self.0.data().1, operation) } else { Ok(()) }
    }
}

/// Removes free pages from the store in a folder, by replacing its file with a compact copy. No
/// process may have the store open; processes that open it meanwhile wait. The file keeps its owner
/// and its mode. If compaction fails, the store is unchanged.
///
/// All pages are verified before they are copied, so the file is read twice.
///
/// # Errors
///
/// [`Error::Corrupt`] if the store is damaged, [`Error::InUse`] or [`Error::AlreadyOpen`] if
/// another or this process has it open, [`Error::Options`] if it is on a network filesystem, where
/// locks of other machines may not work, and [`Error::Lmdb`] if the file has lost pages: see
/// [`Verified::lost_pages`].
pub fn compact(folder: impl AsRef<Path>) -> Result<Compacted> {
    compact_with(folder, &Options::new())
}

/// Compacts a store, as [`compact`] does, with options. Only
/// [`allow_network_filesystem`](Options::allow_network_filesystem) is used.
///
/// # Errors
///
/// As for [`compact`].
pub fn compact_with(folder: impl AsRef<Path>, options: &Options) -> Result<Compacted> {
    compact_by(folder.as_ref(), options, File::sync_all)
}

/// Compacts a store. Calls `sync` to sync the new file and its folder.
pub(crate) fn compact_by(folder: &Path, options: &Options, sync: Sync) -> Result<Compacted> {
    let folder = resolve_folder(folder)?;
    network::check(&folder, options)?;
    let data = folder.join(DATA);
    let len = |operation| {
        fs::metadata(&data).map(|meta| meta.len()).map_err(|e| Error::io(&data, operation, e))
    };
    let before_bytes = len("open")?;
    let (_registration, _lock) = StoreLock::exclusive(&folder)?;
    // LMDB copies pages without checking them, damaged ones included.
    let verified = verify_closed(&folder, |_, _| ())?;
    check_no_lost_pages(&verified, &data, "compact")?;
    let mut partial = Partial::create(&folder)?;
    partial.sync = sync;
    partial.copy_owner_and_mode(&data)?;
    let environment = open_without_locks(&folder)?;
    Environment::copy_environment(&environment, &partial.file, &partial.path, true)?;
    drop(environment);
    partial.publish(&data)?;
    Ok(Compacted { before_bytes, after_bytes: len("compact")? })
}

/// Returns an error if the file has lost pages. LMDB cannot leave out free pages of such a file,
/// and its own error does not say why.
fn check_no_lost_pages(verified: &Verified, data: &Path, operation: &'static str) -> Result<()> {
    if verified.lost_pages == 0 {
        return Ok(());
    }
    let message = format!(
        "{}: expected pages that are all in use or free, found {} that are neither; no row is \
         damaged: to free their space, load the rows into a new store with \"nuthatch store \
         dump\" and \"nuthatch store load\"",
        data.display(),
        verified.lost_pages
    );
    Err(Error::Lmdb { operation, message })
}

/// An incomplete copy. Dropping it removes the file.
struct Partial {
    path: PathBuf,
    file: File,
    is_published: bool,
    /// Syncs the file, and the folder after the rename.
    sync: Sync,
}

type Sync = fn(&File) -> io::Result<()>;

impl Partial {
    /// Creates the file with mode 0600.
    fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(PARTIAL);
        // A file that a killed process left may belong to another user or be readable by others.
        let removed = fs::remove_file(&path)
            .or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) });
        removed.map_err(|e| Error::io(&path, "remove", e))?;
        let mut options = File::options();
        let open = options.read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = open.map_err(|e| Error::io(&path, "create", e))?;
        Ok(Self { path, file, is_published: false, sync: File::sync_all })
    }

    /// Sets the owner and mode of the file to those of the file that it replaces, so that the same
    /// users can open the store as before.
    fn copy_owner_and_mode(&self, data: &Path) -> Result<()> {
        let old = fs::metadata(data).map_err(|e| Error::io(data, "open", e))?;
        let new = self.file.metadata().map_err(|e| Error::io(&self.path, "open", e))?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            fchown(&self.file, Some(old.uid()), Some(old.gid())).map_err(|e| {
                let (user, group) = (old.uid(), old.gid());
                let remedy = format!(
                    "to user {user} and group {group}, as {} has them: {e}; run this as that user",
                    data.display()
                );
                Error::io(&self.path, "change the owner", io::Error::new(e.kind(), remedy))
            })?;
        }
        // After the owner: `chown` may clear bits of the mode.
        let changed = self.file.set_permissions(old.permissions());
        changed.map_err(|e| Error::io(&self.path, "change the mode", e))
    }

    /// Renames the copy to `target`, and syncs the file and its folder. If only the sync of the
    /// folder fails, the error says that the copy is visible but may not survive a power failure.
    fn publish(mut self, target: &Path) -> Result<()> {
        (self.sync)(&self.file).map_err(|e| Error::io(&self.path, "sync", e))?;
        // Opened before the rename: if this fails, nothing is published.
        let path = target.parent().unwrap_or(Path::new("."));
        let folder = File::open(path).map_err(|e| Error::io(path, "open the folder", e))?;
        fs::rename(&self.path, target).map_err(|e| {
            let source = io::Error::new(e.kind(), format!("to {}: {e}", target.display()));
            Error::io(&self.path, "rename", source)
        })?;
        self.is_published = true;
        (self.sync)(&folder).map_err(|e| {
            let state = "published, but may not survive a power failure";
            let source = format!("{state}: sync {}: {e}", path.display());
            Error::io(target, "publish", io::Error::new(e.kind(), source))
        })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_published {
            // If this fails, the next copy replaces the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::layout::{META_PAGES, meta};
    use crate::file::u64_at;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_copy_to_a_full_disk_names_where_it_was_to_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), &Options::new()).expect("a store");
        let full = File::options().write(true).open("/dev/full").expect("a full disk");
        for compact in [false, true] {
            let copy = store.0.environment.copy(&full, Path::new("/backups/data.mdb"), compact);
            let text = copy.expect_err("no space").to_string();
            assert!(text.starts_with("/backups/data.mdb: copy to: No space left"), "{text}");
            let text = store.backup_to(&full, compact).expect_err("no space").to_string();
            assert!(text.starts_with("<destination>: copy to: No space left"), "{text}");
        }
    }

    #[test]
    fn a_copy_does_not_replace_a_store() {
        let folder = tempfile::tempdir().expect("a folder");
        let [own, other] = ["own", "other"].map(|name| folder.path().join(name));
        let store = Store::open(&own, &Options::new()).expect("a store");
        drop(Store::open(&other, &Options::new()).expect("another store"));
        for (place, found) in [(&own, "that of the store itself"), (&other, "one")] {
            let text = store.backup(place, false).expect_err("a store").to_string();
            let expected = "back up: expected a folder without data.mdb for the copy, found";
            assert_eq!(text, format!("{}: {expected} {found}", place.display()));
        }
    }

    /// Adds a page to the file that is neither in a table nor free. Returns the bytes of the file.
    fn lose_a_page(folder: &Path) -> Vec<u8> {
        let store = Store::open(folder, &Options::new()).expect("a store");
        let table = store.table("t").expect("a table");
        store.put(&table, b"key", b"value").expect("a row");
        assert!(store.close_within(std::time::Duration::from_mins(10)));
        let path = folder.join(DATA);
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
        bytes
    }

    #[track_caller]
    fn names_lost_pages(error: &Error, operation: &str, path: &Path) {
        assert_eq!(error.code(), "lmdb", "{error}");
        let text = error.to_string();
        let begin = format!("{operation}: {}: expected pages that are all", path.display());
        assert!(text.starts_with(&begin), "{text}");
        for part in ["found 1 that are neither", "\"nuthatch store dump\"", "load"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_store_with_lost_pages_is_whole_but_is_not_compacted() {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = lose_a_page(folder.path());
        let path = folder.path().canonicalize().expect("its path").join(DATA);
        let verified = verify_closed(folder.path(), |_, _| ()).expect("no damage");
        assert_eq!(verified.lost_pages, 1, "{verified:?}");
        let error = compact(folder.path()).expect_err("LMDB does not compact it");
        names_lost_pages(&error, "compact", &path);
        assert_eq!(fs::read(&path).expect("the file"), bytes, "the store is as it was");
    }

    #[test]
    fn a_store_with_lost_pages_is_copied_whole_and_never_without_its_free_pages() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store");
        fs::create_dir(&store).expect("a folder");
        lose_a_page(&store);
        let path = store.canonicalize().expect("its path").join(DATA);
        let store = Store::open(&store, &Options::new()).expect("a store");
        let copy = folder.path().join("small");
        let error = store.backup(&copy, true).expect_err("LMDB does not compact it");
        names_lost_pages(&error, "back up", &path);
        assert!(!copy.exists(), "there is no copy");
        let pipe = File::create(folder.path().join("pipe")).expect("a file");
        let error = store.backup_to(&pipe, true).expect_err("LMDB does not compact it");
        names_lost_pages(&error, "back up", &path);
        store.backup(folder.path().join("copy"), false).expect("a copy with all pages");
    }

    #[test]
    fn a_store_on_a_network_filesystem_is_compacted_only_if_that_is_allowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), &Options::new()).expect("a store");
        assert!(store.close_within(std::time::Duration::from_mins(10)));
        let _nfs = network::Pretended::new("nfs");
        let error = compact(folder.path()).expect_err("a network filesystem");
        assert_eq!(error.code(), "options", "{error}");
        assert!(error.to_string().starts_with("allow_network_filesystem: expected"), "{error}");
        assert!(error.to_string().ends_with("on nfs"), "{error}");
        compact_with(folder.path(), &Options::new().allow_network_filesystem(true))
            .expect("it is allowed");
    }

    const EIO: i32 = 5;

    fn partial(folder: &Path, sync: fn(&File) -> io::Result<()>) -> Partial {
        let mut partial = Partial::create(folder).expect("a file");
        partial.sync = sync;
        partial
    }

    fn is_folder(file: &File) -> bool {
        file.metadata().expect("its kind").is_dir()
    }

    #[test]
    fn a_copy_is_synced_before_it_has_its_name_and_its_folder_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join(DATA);
        let fail_file: fn(&File) -> _ = |file| {
            if is_folder(file) { Ok(()) } else { Err(io::Error::from_raw_os_error(EIO)) }
        };
        let error = partial(folder.path(), fail_file).publish(&target).expect_err("a sync");
        assert!(error.to_string().contains("data.mdb.partial: sync: "), "{error}");
        assert!(!target.exists(), "it was not synced, and has no name");

        let fail_folder: fn(&File) -> _ = |file| {
            if is_folder(file) { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
        };
        let error = partial(folder.path(), fail_folder).publish(&target).expect_err("a sync");
        let text = error.to_string();
        assert!(text.contains("published, but may not survive a power failure: sync "), "{text}");
        assert!(text.starts_with(&target.display().to_string()), "{text}");
        assert!(target.exists(), "it has its name");
    }

    #[test]
    fn a_copy_that_cannot_be_renamed_names_both_paths_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join(DATA);
        fs::create_dir(&target).expect("a folder in its place");
        let error = partial(folder.path(), File::sync_all).publish(&target).expect_err("a folder");
        let text = error.to_string();
        assert!(text.contains("data.mdb.partial: rename: to "), "{text}");
        assert!(text.contains(&format!("to {}: ", target.display())), "{text}");
        assert!(!folder.path().join(PARTIAL).exists());
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("the file").mode() & 0o7777
    }

    #[test]
    fn a_copy_can_be_read_by_its_user_alone_and_compact_keeps_the_mode_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store");
        let store = Store::open(&path, &Options::new()).expect("a store");
        for (name, compact) in [("copy", false), ("small", true)] {
            let copy = folder.path().join(name);
            store.backup(&copy, compact).expect("a copy");
            assert_eq!(mode(&copy.join(DATA)), 0o600, "{name}");
        }
        assert!(store.close_within(std::time::Duration::from_mins(10)));
        for expected in [0o600, 0o660, 0o640] {
            let data = path.join(DATA);
            fs::set_permissions(&data, fs::Permissions::from_mode(expected)).expect("a mode");
            // A leftover of a killed process that others can read.
            fs::write(path.join(PARTIAL), b"").expect("a leftover");
            compact(&path).expect("a smaller file");
            assert_eq!(mode(&data), expected);
        }
    }

    #[test]
    fn compact_keeps_the_owner_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), &Options::new()).expect("a store");
        assert!(store.close_within(std::time::Duration::from_mins(10)));
        let data = folder.path().join(DATA);
        let owner = |path: &Path| {
            let found = fs::metadata(path).expect("the file");
            (found.uid(), found.gid())
        };
        // Only root can change the owner. Other users check that the file stays theirs.
        if owner(&data).0 == 0 {
            std::os::unix::fs::chown(&data, Some(65_534), Some(65_534)).expect("another owner");
        }
        let before = owner(&data);
        compact(folder.path()).expect("a smaller file");
        assert_eq!(owner(&data), before);
    }
}
