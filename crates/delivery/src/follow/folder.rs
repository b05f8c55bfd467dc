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
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::symlink;
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
    /// The lock, which the system releases when the file is closed.
    _lock: File,
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
        Ok(Self { own, path, _lock: file })
    }

    /// Reads the state, and makes the link agree with it. Returns `None` if there is no generation,
    /// or one of its files was removed.
    pub(super) fn state(&self) -> Result<Option<State>> {
        let path = self.own.join(STATE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path, "read", error)),
        };
        // Written and renamed by this program: only another program can have damaged it.
        let state: State = serde_json::from_slice(&text).map_err(|e| Error::Contents {
            place: path.display().to_string(),
            expected: "the state of a follower; remove the file to fetch everything again".into(),
            found: e.to_string(),
        })?;
        if !state.is_complete(&self.own.join(&state.folder)) {
            return Ok(None);
        }
        self.point(&state.name, &state.folder)?;
        Ok(Some(state))
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
    pub(super) fn generation(&self, state: &State) -> PathBuf {
        self.own.join(&state.folder)
    }

    /// Returns the path of a file while it is being fetched.
    pub(super) fn partial(&self, file: &DataFile) -> PathBuf {
        self.own.join(PARTIAL).join(&file.blake3)
    }

    /// Removes the partial files that a generation does not have.
    pub(super) fn remove_other_partials(&self, generation: &Generation) -> Result<()> {
        let wanted: HashSet<_> = generation.files.iter().map(|file| file.blake3.as_str()).collect();
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
        Ok(NewGeneration { target: self.own.join(folder_name(generation)), path })
    }

    /// Makes the link point to a generation. Returns whether it did not before.
    pub(super) fn point_to(&self, generation: &Generation) -> Result<bool> {
        self.point(generation.name(), &folder_name(generation))
    }

    /// Replaces the link, unless it already points there.
    fn point(&self, name: &str, folder: &str) -> Result<bool> {
        let target = Path::new(OWN).join(folder).join(name);
        let (link, new) = (self.link(name), self.own.join("link.new"));
        match fs::read_link(&link) {
            Ok(now) if now == target => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => {
                return Err(Error::Contents {
                    place: link.display().to_string(),
                    expected: "no file, or a symbolic link of a follower".to_owned(),
                    found: "another file; move it away".to_owned(),
                });
            }
        }
        let _ = fs::remove_file(&new);
        symlink(&target, &new).map_err(|e| Error::io(&new, "create", e))?;
        fs::rename(&new, &link).map_err(|e| Error::io(&link, "rename", e))?;
        sync(&self.path)?;
        Ok(true)
    }

    /// Removes the link of a name that the snapshot no longer has.
    pub(super) fn remove_link(&self, name: &str) -> Result<()> {
        let link = self.link(name);
        match fs::remove_file(&link) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io(&link, "remove", error))
            }
            _ => Ok(()),
        }
    }

    /// Removes all generations but the current one and those that came last before it. What cannot
    /// be removed is removed after a later swap.
    pub(super) fn prune(&self, current: &Generation, previous: usize) {
        let Ok(entries) = fs::read_dir(&self.own) else { return };
        let mut others: Vec<_> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                let is_other = name != folder_name(current) && is_folder_name(&name);
                let modified = entry.metadata().and_then(|found| found.modified()).ok()?;
                is_other.then(|| (modified, entry.path()))
            })
            .collect();
        others.sort();
        let surplus = others.len().saturating_sub(previous);
        for (_, path) in others.drain(..surplus) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// The folder of a generation that is not complete.
pub(super) struct NewGeneration {
    path: PathBuf,
    target: PathBuf,
}

impl NewGeneration {
    /// Returns the path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Adds a file of an earlier generation. Returns false if that is not possible.
    pub(super) fn link(&self, local: &Path, name: &str) -> bool {
        fs::hard_link(local, self.path(name)).is_ok()
    }

    /// Moves a file that was fetched here. A generation may have the same contents twice.
    pub(super) fn take(&self, from: &Path, name: &str) -> Result<()> {
        let to = self.path(name);
        fs::rename(from, &to).map_err(|e| Error::io(from, "rename", e))
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

fn sync(folder: &Path) -> Result<()> {
    let synced: io::Result<()> = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|e| Error::io(folder, "sync", e))
}
