//! Copies of a store: made while others write, or in its place.

use crate::environment::{Environment, open_alone};
use crate::error::{Error, Result};
use crate::file::{DATA, resolve_folder};
use crate::lock_file::StoreLock;
use crate::network;
use crate::options::Options;
use crate::store::Store;
use crate::verify::{Verified, verify_closed};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
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
    /// refused. Only the user of this process can read the copy: its mode is 0600.
    ///
    /// All pages are verified before they are copied, so the file is read twice.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the store is damaged, and [`Error::Lmdb`] if `compact` is set and the
    /// file has lost pages: see [`Verified::lost_pages`]. There is no copy then.
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

    /// Refuses a folder for a copy that has a store, or is that of this one.
    fn check_no_store_at(&self, folder: &Path, target: &Path) -> Result<()> {
        let Ok(there) = fs::metadata(target) else { return Ok(()) };
        let own = fs::metadata(self.0.data().1).ok();
        let is_own = own.is_some_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()));
        let found = if is_own { "that of the store itself" } else { "one" };
        let message = format!("expected a folder without {DATA} for the copy, found {found}");
        let exists = io::Error::new(io::ErrorKind::AlreadyExists, message);
        Err(Error::io(folder, "back up", exists))
    }

    /// Writes a copy of the store to a file, a pipe or a socket, as [`backup`](Self::backup) does.
    pub fn backup_to(&self, file: &File, compact: bool) -> Result<()> {
        self.check_whole("back up", compact)?;
        self.0.environment.copy(file, Path::new("<destination>"), compact)
    }

    /// Verifies all pages, and that LMDB can leave the free ones out if it is to.
    fn check_whole(&self, act: &'static str, compact: bool) -> Result<()> {
        let verified = self.verify(|_, _| ())?;
        if compact { check_no_lost_pages(&verified, self.0.data().1, act) } else { Ok(()) }
    }
}

/// Makes the store in a folder as small as it can be, in its place. No process may have it open,
/// and none can open it for writing meanwhile. The file keeps its owner and its mode. When this
/// fails the store is as it was.
///
/// All pages are verified before they are copied, so the file is read twice.
///
/// # Errors
///
/// [`Error::Corrupt`] if the store is damaged, [`Error::InUse`] if a process has it open,
/// [`Error::Options`] if it is on a network filesystem, where locks of other machines may not hold,
/// and [`Error::Lmdb`] if the file has lost pages: see [`Verified::lost_pages`].
pub fn compact(folder: impl AsRef<Path>) -> Result<Compacted> {
    compact_with(folder, &Options::new())
}

/// Makes a store as small as it can be, as [`compact`] does. Of the options, only
/// [`allow_network_filesystem`](Options::allow_network_filesystem) is used.
///
/// # Errors
///
/// As for [`compact`].
pub fn compact_with(folder: impl AsRef<Path>, options: &Options) -> Result<Compacted> {
    compact_by(folder.as_ref(), options, File::sync_all)
}

/// Compacts a store, and syncs the new file and its folder by `sync`.
pub(crate) fn compact_by(folder: &Path, options: &Options, sync: Sync) -> Result<Compacted> {
    let folder = resolve_folder(folder)?;
    network::check(&folder, options)?;
    let data = folder.join(DATA);
    let len =
        |act| fs::metadata(&data).map(|meta| meta.len()).map_err(|e| Error::io(&data, act, e));
    let before_bytes = len("open")?;
    let (_registration, _lock) = StoreLock::exclusive(&folder)?;
    // LMDB copies what it finds, damage included.
    let verified = verify_closed(&folder, |_, _| ())?;
    check_no_lost_pages(&verified, &data, "compact")?;
    let mut partial = Partial::create(&folder)?;
    partial.sync = sync;
    partial.take_owner_and_mode_of(&data)?;
    let environment = open_alone(&folder)?;
    Environment::copy_of(&environment, &partial.file, &partial.path, true)?;
    drop(environment);
    partial.publish(&data)?;
    Ok(Compacted { before_bytes, after_bytes: len("compact")? })
}

/// Refuses to leave free pages out of a file with lost pages: LMDB does not, and names no reason.
fn check_no_lost_pages(verified: &Verified, data: &Path, act: &'static str) -> Result<()> {
    if verified.lost_pages == 0 {
        return Ok(());
    }
    let message = format!(
        "{}: expected pages that are all in use or free, found {} that are neither; the rows are \
         whole: to regain the room, load them into a new store with \"nuthatch store dump\" and \
         \"nuthatch store load\"",
        data.display(),
        verified.lost_pages
    );
    Err(Error::Lmdb { act, message })
}

/// A copy that is not whole yet. Dropping it removes it.
struct Partial {
    path: PathBuf,
    file: File,
    is_published: bool,
    /// Syncs the file, and the folder after the rename.
    sync: Sync,
}

type Sync = fn(&File) -> io::Result<()>;

impl Partial {
    /// Creates the file, for the user of this process alone.
    fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(PARTIAL);
        // One that a killed process left may belong to others, or be open to them.
        let removed = fs::remove_file(&path)
            .or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) });
        removed.map_err(|e| Error::io(&path, "remove", e))?;
        let mut options = File::options();
        let open = options.read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = open.map_err(|e| Error::io(&path, "create", e))?;
        Ok(Self { path, file, is_published: false, sync: File::sync_all })
    }

    /// Gives the file the owner and the mode of the one that it is to replace, so that the same
    /// users can open the store as before.
    fn take_owner_and_mode_of(&self, data: &Path) -> Result<()> {
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
        // After the owner, or the system may take bits of the mode away.
        let changed = self.file.set_permissions(old.permissions());
        changed.map_err(|e| Error::io(&self.path, "change the mode", e))
    }

    /// Gives the copy its name, durably. An error says so if the copy has its name, but may lose it
    /// in a power failure.
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
            // The next copy replaces it if this fails.
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

    /// Adds a page to the file that is in no table and not free. Returns the file's bytes.
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
    fn names_lost_pages(error: &Error, act: &str, path: &Path) {
        assert_eq!(error.code(), "lmdb", "{error}");
        let text = error.to_string();
        let begin = format!("{act}: {}: expected pages that are all", path.display());
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
            // What a killed process left is open to others.
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
        // Only root may give the file away; others see that it stays theirs.
        if owner(&data).0 == 0 {
            std::os::unix::fs::chown(&data, Some(65_534), Some(65_534)).expect("another owner");
        }
        let before = owner(&data);
        compact(folder.path()).expect("a smaller file");
        assert_eq!(owner(&data), before);
    }
}
