//! The folder of a follower.
//!
//! ```text
//! users.nut                     a symbolic link to the file of the current generation
//! .nuthatch/lock                locked by the follower
//! .nuthatch/state.json          the current generation
//! .nuthatch/7-HASH/users.nut    the files of a generation, complete and verified
//! .nuthatch/new/                files of a generation that is not complete
//! .nuthatch/partial/HASH        a file that is being fetched
//! ```

use super::folder_name::{folder_name, is_folder_name};
use super::state::State;
use crate::error::{Error, Result};
use crate::manifest::{DataFile, Generation};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// The folder of the follower's own files.
const OWN: &str = ".nuthatch";
/// The folder of the files that are being fetched.
const PARTIAL: &str = "partial";
/// The folder of a generation that is not complete.
const NEW: &str = "new";
const STATE: &str = "state.json";
const LOCK: &str = "lock";

/// A folder that is locked by this follower.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    own: PathBuf,
    /// The lock, which the system releases when the process ends.
    lock: File,
}

impl Folder {
    /// Creates the folder if it does not exist, and locks it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|e| Error::io(path, "open", e))?;
        let own = path.join(OWN);
        let partial = own.join(PARTIAL);
        fs::create_dir_all(&partial).map_err(|e| Error::io(&partial, "create", e))?;
        let lock = own.join(LOCK);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let file = opened.map_err(|e| Error::io(&lock, "open", e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { folder: path }),
            Err(TryLockError::Error(error)) => return Err(Error::io(&lock, "lock", error)),
        }
        Ok(Self { own, path, lock: file })
    }

    /// Returns whether the lock is still that of the folder at the path: the folder can have been
    /// moved, removed or replaced.
    pub(super) fn is_locked(&self) -> bool {
        let found = fs::metadata(self.own.join(LOCK));
        match (found, self.lock.metadata()) {
            (Ok(found), Ok(held)) => (found.dev(), found.ino()) == (held.dev(), held.ino()),
            _ => false,
        }
    }

    /// Creates and locks the folder at the same path.
    pub(super) fn open_again(&self) -> Result<Self> {
        Self::open(&self.path)
    }

    /// Reads the state. Returns `None` if no swap was ever begun.
    pub(super) fn state(&self) -> Result<Option<State>> {
        let path = self.own.join(STATE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path, "read", error)),
        };
        // Written and renamed by this program: only another program can have damaged it.
        let damaged = |found| Error::Contents {
            place: path.display().to_string(),
            expected: "the state of a follower; remove the file to fetch everything again, from \
                       whatever the destination has"
                .into(),
            found,
        };
        let state: State = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        let next = state.next.iter().map(|next| &next.generation);
        match state.generation.iter().chain(next).find_map(Generation::violation) {
            Some((expected, found)) => Err(damaged(format!("{found} instead of {expected}"))),
            None => Ok(Some(state)),
        }
    }

    /// Returns whether the folder has all files of a generation, with their lengths.
    pub(super) fn is_complete(&self, generation: &Generation) -> bool {
        generation.files.iter().all(|file| self.has_file(generation, file))
    }

    /// Returns whether the folder has a file of a generation, with its length.
    pub(super) fn has_file(&self, generation: &Generation, file: &DataFile) -> bool {
        let found = fs::metadata(self.file_of(generation, file));
        found.is_ok_and(|found| found.len() == file.bytes)
    }

    /// Returns whether the link points to a generation.
    pub(super) fn is_linked_to(&self, generation: &Generation) -> bool {
        fs::read_link(self.link(generation.name())).is_ok_and(|to| to == target(generation))
    }

    /// Returns whether the folder has all files of a generation, with their contents.
    pub(super) fn has(&self, generation: &Generation) -> bool {
        let folder = self.generation(generation);
        generation.files.iter().all(|file| has_contents(&folder.join(&file.name), file))
    }

    /// Returns the path of a file of a generation with the same contents, if it is not damaged.
    pub(super) fn find(&self, wanted: &DataFile, generation: &Generation) -> Option<PathBuf> {
        let file = generation.files.iter().find(|file| file.blake3 == wanted.blake3)?;
        let path = self.generation(generation).join(&file.name);
        has_contents(&path, wanted).then_some(path)
    }

    /// Writes the state.
    pub(super) fn write_state(&self, state: &State) -> Result<()> {
        let (path, new) = (self.own.join(STATE), self.own.join("state.json.new"));
        let text = serde_json::to_vec(state).expect("numbers and texts");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        written.map_err(|e| Error::io(&new, "write", e))?;
        fs::rename(&new, &path).map_err(|e| Error::io(&path, "rename", e))?;
        sync(&self.own)
    }

    /// Returns the path that programs open.
    pub(super) fn link(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the folder with the files of a generation.
    fn generation(&self, generation: &Generation) -> PathBuf {
        self.own.join(folder_name(generation))
    }

    /// Returns the path of a file while it is being fetched.
    pub(super) fn partial(&self, file: &DataFile) -> PathBuf {
        self.partial_of(&file.blake3)
    }

    /// Returns the path of a file with this hash while it is being fetched.
    pub(super) fn partial_of(&self, hash: &str) -> PathBuf {
        self.own.join(PARTIAL).join(hash)
    }

    /// Returns the path of a file of a generation. Its contents are not checked.
    pub(super) fn file_of(&self, generation: &Generation, file: &DataFile) -> PathBuf {
        self.generation(generation).join(&file.name)
    }

    /// Returns whether a part of a file was fetched.
    pub(super) fn has_partial(&self, file: &DataFile) -> bool {
        fs::metadata(self.partial(file)).is_ok_and(|found| found.len() > 0)
    }

    /// Removes the partial files with other hashes than these.
    pub(super) fn remove_other_partials(&self, wanted: &HashSet<&str>) -> Result<()> {
        let folder = self.own.join(PARTIAL);
        for entry in fs::read_dir(&folder).map_err(|e| Error::io(&folder, "list", e))? {
            let entry = entry.map_err(|e| Error::io(&folder, "list", e))?;
            if entry.file_name().to_str().is_none_or(|name| !wanted.contains(name)) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Creates an empty folder for a generation.
    pub(super) fn new_generation(&self, generation: &Generation) -> Result<NewGeneration> {
        let path = self.own.join(NEW);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io(&path, "remove", error));
            }
            _ => fs::create_dir(&path).map_err(|e| Error::io(&path, "create", e))?,
        }
        let target = self.generation(generation);
        Ok(NewGeneration { path, target, taken: HashMap::new() })
    }

    /// Fails if there is a file at the path of the link that is not a link of a follower.
    pub(super) fn check_link(&self, name: &str) -> Result<()> {
        self.link_target(name).map(drop)
    }

    /// Returns where the link points to, or `None` if there is none.
    fn link_target(&self, name: &str) -> Result<Option<PathBuf>> {
        let link = self.link(name);
        match fs::read_link(&link) {
            Ok(target) if target.starts_with(OWN) => Ok(Some(target)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if !is_no_link(&error) => Err(Error::io(&link, "read", error)),
            Ok(_) | Err(_) => Err(Error::Contents {
                place: link.display().to_string(),
                expected: "no file, or a symbolic link of a follower".to_owned(),
                found: "another file or link; move it away".to_owned(),
            }),
        }
    }

    /// Makes the link point to a generation.
    pub(super) fn point_to(&self, generation: &Generation) -> Result<()> {
        let (name, target) = (generation.name(), target(generation));
        if self.link_target(name)?.as_deref() == Some(&target) {
            return Ok(());
        }
        let (link, new) = (self.link(name), self.own.join("link.new"));
        let _ = fs::remove_file(&new);
        symlink(&target, &new).map_err(|e| Error::io(&new, "create", e))?;
        fs::rename(&new, &link).map_err(|e| Error::io(&link, "rename", e))?;
        sync(&self.path)
    }

    /// Restores the link that the folder had before it got one to another generation: to the
    /// generation before, or none if there was no generation. Returns whether it was restored. The
    /// other link stays if the generation before is not complete.
    pub(super) fn restore_link(
        &self,
        before: Option<&Generation>,
        replaced_by: &Generation,
    ) -> bool {
        if let Some(before) = before {
            if !self.is_complete(before) {
                return false;
            }
            // An error of the sync alone leaves the link restored.
            let _ = self.point_to(before);
            if !self.is_linked_to(before) || before.name() == replaced_by.name() {
                return self.is_linked_to(before);
            }
        }
        if self.is_linked_to(replaced_by) {
            let _ = fs::remove_file(self.link(replaced_by.name()));
        }
        !self.is_linked_to(replaced_by)
    }

    /// Removes the links of a follower but that of one name, as far as that is possible: those of
    /// names that the snapshot had before. Links that a user has made under other names stay.
    pub(super) fn remove_other_links(&self, name: &str) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let file_name = entry.file_name();
            let is_own = fs::read_link(entry.path()).is_ok_and(|target| {
                target.starts_with(OWN) && target.file_name() == Some(&file_name)
            });
            if is_own && file_name != name {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes what belongs to a generation that is not complete.
    pub(super) fn remove_incomplete(&self) {
        let _ = fs::remove_dir_all(self.own.join(NEW));
        let partial = self.own.join(PARTIAL);
        for entry in fs::read_dir(&partial).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// Removes the folders of all generations with other names than these, except those that a link
    /// points to, whatever the state says. What cannot be removed is removed later.
    pub(super) fn prune(&self, keep: &[&str]) {
        let Ok(linked) = self.linked() else { return };
        let keep = |name: &str| keep.contains(&name) || linked.contains(Path::new(name));
        for entry in fs::read_dir(&self.own).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_surplus = name.to_str().is_some_and(|name| is_folder_name(name) && !keep(name));
            if is_surplus {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Returns the names of the folders of generations to which links point.
    fn linked(&self) -> io::Result<HashSet<PathBuf>> {
        let mut linked = HashSet::new();
        for entry in fs::read_dir(&self.path)? {
            match fs::read_link(entry?.path()) {
                Ok(target) => {
                    let of_generation = target.strip_prefix(OWN).ok().and_then(Path::parent);
                    linked.extend(of_generation.map(Path::to_owned));
                }
                Err(error) if error.kind() == ErrorKind::NotFound || is_no_link(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(linked)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A child process that was just forked has the file open, too, until it runs its program.
        let _ = self.lock.unlock();
    }
}

/// The folder of a generation that is not complete.
pub(super) struct NewGeneration {
    path: PathBuf,
    target: PathBuf,
    /// The files that were moved here, by their hash.
    taken: HashMap<String, PathBuf>,
}

impl NewGeneration {
    /// Returns the path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Adds a link to a file of an earlier generation.
    pub(super) fn link(&self, local: &Path, file: &DataFile) -> Result<()> {
        let to = self.path(&file.name);
        fs::hard_link(local, &to).map_err(|e| Error::io(&to, "link", e))
    }

    /// Moves a partial file here that is complete. If a generation has the same contents under
    /// several names, the first one was moved, and the others are links to it.
    pub(super) fn take(&mut self, partial: &Path, file: &DataFile) -> Result<()> {
        let to = self.path(&file.name);
        if let Some(first) = self.taken.get(&file.blake3) {
            return fs::hard_link(first, &to).map_err(|e| Error::io(&to, "link", e));
        }
        fs::rename(partial, &to).map_err(|e| Error::io(partial, "rename", e))?;
        self.taken.insert(file.blake3.clone(), to);
        Ok(())
    }

    /// Moves the files that were moved here back to their partial files.
    pub(super) fn give_back(self, partial_of: impl Fn(&str) -> PathBuf) {
        for (hash, path) in &self.taken {
            let _ = fs::rename(path, partial_of(hash));
        }
    }

    /// Renames the folder to its name, after its files are synced.
    pub(super) fn publish(self) -> Result<()> {
        sync(&self.path)?;
        match fs::remove_dir_all(&self.target) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io(&self.target, "remove", error));
            }
            _ => {}
        }
        fs::rename(&self.path, &self.target).map_err(|e| Error::io(&self.target, "rename", e))?;
        self.target.parent().map_or(Ok(()), sync)
    }
}

/// Returns the target of the link to a generation.
fn target(generation: &Generation) -> PathBuf {
    Path::new(OWN).join(folder_name(generation)).join(generation.name())
}

/// Returns whether the error of reading a link says that the file is not a link.
fn is_no_link(error: &io::Error) -> bool {
    error.kind() == ErrorKind::InvalidInput
}

/// Returns whether a file has the contents that a manifest describes.
fn has_contents(path: &Path, expected: &DataFile) -> bool {
    let mut hasher = blake3::Hasher::new();
    let found = File::open(path).and_then(|mut file| {
        hasher.update_reader(&mut file)?;
        Ok(hasher.finalize().to_hex())
    });
    found.is_ok_and(|found| found.as_str() == expected.blake3)
}

fn sync(folder: &Path) -> Result<()> {
    let synced: io::Result<()> = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|e| Error::io(folder, "sync", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that fails must not look like a file that the user has to move away.
    #[test]
    fn a_link_that_cannot_be_read_is_not_called_another_file() {
        let directory = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::open(&directory.path().join("folder")).expect("a folder");
        std::os::unix::fs::symlink("elsewhere", folder.link("link")).expect("a link");
        fs::write(folder.link("file"), "mine").expect("a file");
        for name in ["link", "file"] {
            let error = folder.check_link(name).expect_err("another file");
            assert!(matches!(error, Error::Contents { .. }), "{error}");
        }
        // A file in the place of the folder is an error of the system that root gets, too.
        folder.path = folder.link("file");
        let error = folder.check_link("users.nut").expect_err("a file for a folder");
        assert!(matches!(error, Error::Io { operation: "read", .. }), "{error}");
    }
}
