//! The last generation: the current one of the destination, else the file at the path of the
//! output. A run whose publication failed, or that was rolled back, did not build it.
//!
//! The manifest of the destination is read once, at the start of a run: the run may replace that
//! version only.

use super::publication::wait;
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::{Job, Publish};
use nuthatch_delivery::{
    Destination, Error as DeliveryError, FollowOptions, Follower, Generation, SigningKey,
    TrustedKey, download, generations, has_contents,
};
use nuthatch_snapshot::{Error as SnapshotError, Snapshot};
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The last generation, if a job needs it and there is one.
#[derive(Default)]
pub(super) struct Previous {
    /// The serial number of the manifest of the destination, if the job has one; 0 if nothing was
    /// published there.
    serial: Option<u64>,
    snapshot: Option<Snapshot>,
    /// Why there is no snapshot, although the destination has a generation: a file of it is
    /// missing or damaged.
    damage: Option<String>,
    /// A folder that is removed at the end.
    _folder: Option<TemporaryFolder>,
}

impl Previous {
    /// Reads the manifest of the destination. Opens the last generation if the job needs it, after
    /// fetching it if it is not at the path of the output.
    pub(super) fn find(job: &Job, interruption: &Interruption) -> Result<Self> {
        let is_needed = job.gates.has_comparison() || job.is_incremental();
        let of_output = || if is_needed { Self::of_output(job) } else { Ok(Self::default()) };
        let Some(publish) = &job.publish else { return of_output() };
        let destination = Destination::open(&publish.destination)?;
        // Without keys, no signature is checked here; publishing checks it.
        let trusted = if is_needed { trusted_keys(publish)? } else { Vec::new() };
        let manifest = match wait(interruption, generations(&destination, &trusted)) {
            Ok(manifest) => manifest,
            Err(Error::Delivery(DeliveryError::NothingPublished { .. })) => {
                return Ok(Self { serial: Some(0), ..of_output()? });
            }
            Err(error) => return Err(error),
        };
        let serial = Some(manifest.serial);
        // A file that is damaged, or of another kind, is not the last generation.
        if !is_needed || has_contents(manifest.current(), &job.output).unwrap_or(false) {
            return Ok(Self { serial, ..of_output()? });
        }
        let folder = TemporaryFolder::beside(&job.output)?;
        match fetch((&destination, trusted), &folder.path, interruption) {
            Ok(snapshot) => Ok(Self { serial, snapshot, damage: None, _folder: Some(folder) }),
            Err(error) => {
                let place = (&destination, manifest.current(), &*folder.path);
                let damage = damage_of(place, error, interruption)?;
                Ok(Self { serial, damage: Some(damage.to_string()), ..Self::default() })
            }
        }
    }

    /// Opens the file at the path of the output, if there is one.
    fn of_output(job: &Job) -> Result<Self> {
        let exists = job.output.exists();
        let opened = exists.then(|| Snapshot::open(&job.output)).transpose();
        let snapshot = opened.map_err(|error| {
            Error::Job(format!(
                "{}: the last generation cannot be read: {error}; \
                 remove the file to run without it",
                job.output.display()
            ))
        })?;
        Ok(Self { snapshot, ..Self::default() })
    }

    /// Returns the serial number of the manifest that the run may replace, if the job has a
    /// destination.
    pub(super) fn serial(&self) -> Option<u64> {
        self.serial
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Returns why the last generation cannot be read, if a file of it is missing or damaged.
    pub(super) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }
}

/// Returns the keys of which one must have signed the manifest, if the job names any: these, and
/// the one that signs for the job.
fn trusted_keys(publish: &Publish) -> Result<Vec<TrustedKey>> {
    let named = publish.trusted_keys.iter().map(|path| TrustedKey::read(path));
    let mut keys = named.collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = publish.signing_key.as_deref().filter(|_| !keys.is_empty()) {
        keys.push(SigningKey::read(path)?.trusted_key());
    }
    Ok(keys)
}

/// Fetches the current generation of a destination into a folder, and opens it.
fn fetch(
    (destination, trusted_keys): (&Destination, Vec<TrustedKey>),
    folder: &Path,
    interruption: &Interruption,
) -> Result<Option<Snapshot>, Error> {
    let options = FollowOptions { trusted_keys, ..FollowOptions::default() };
    let mut follower = Follower::open(destination.clone(), folder, options)?;
    wait(interruption, follower.check(|_| {}))?;
    Ok(follower.path().map(Snapshot::open).transpose()?)
}

/// Returns an error of fetching a generation if its cause is a file that is missing or damaged.
/// Such an error stays until another generation is published, so it must not prevent that.
///
/// # Errors
///
/// Returns all other errors, such as that of a store that cannot be reached.
fn damage_of(
    (destination, generation, folder): (&Destination, &Generation, &Path),
    error: Error,
    interruption: &Interruption,
) -> Result<DeliveryError> {
    let error = match error {
        Error::Delivery(error) => error,
        Error::Snapshot(error) => DeliveryError::Snapshot(error),
        other => return Err(other),
    };
    match error {
        DeliveryError::ObjectNotFound { .. }
        | DeliveryError::Contents { .. }
        | DeliveryError::Snapshot(SnapshotError::Corrupt(_) | SnapshotError::NotASnapshot(_)) => {
            Ok(error)
        }
        DeliveryError::Store { ref object, .. } => {
            // Stores refuse ranges that a truncated object does not have, each by its own error.
            let name = object.rsplit('/').next();
            let Some(file) = generation.files.iter().find(|file| name == Some(&file.object)) else {
                return Err(error.into());
            };
            let whole = folder.join(".whole");
            match wait(interruption, download(destination, file, &whole)) {
                Err(Error::Delivery(damage @ DeliveryError::Contents { .. })) => Ok(damage),
                _ => Err(error.into()),
            }
        }
        error => Err(error.into()),
    }
}

/// A folder that is removed when it is dropped. Another run cannot use it meanwhile.
struct TemporaryFolder {
    path: PathBuf,
    /// The folder itself, locked. The system releases the lock when the process ends.
    _lock: File,
}

impl TemporaryFolder {
    /// Creates a folder beside a file, or empties the one that a killed run left: what is in it can
    /// be incomplete or damaged.
    fn beside(file: &Path) -> Result<Self> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let path = file.with_file_name(format!(".{name}.last"));
        let failed = |error| Error::System(format!("{}: create: {error}", path.display()));
        loop {
            fs::create_dir_all(&path).map_err(failed)?;
            let Some(lock) = found(File::open(&path)).map_err(failed)? else { continue };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let output = file.display();
                    let message = "another run of the job reads the last generation; run one";
                    return Err(Error::System(format!("{output}: {message} after the other")));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // A run that ended meanwhile has removed the folder that was opened.
            let locked = lock.metadata().map_err(failed)?;
            let now = found(fs::symlink_metadata(&path)).map_err(failed)?;
            if now.as_ref().is_some_and(Metadata::is_symlink) {
                let found = "expected a folder, found a symbolic link; remove it";
                return Err(failed(io::Error::other(found)));
            }
            if now.is_some_and(|now| (now.dev(), now.ino()) == (locked.dev(), locked.ino())) {
                empty(&path).map_err(failed)?;
                return Ok(Self { path, _lock: lock });
            }
        }
    }
}

/// Removes what is in a folder.
fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Returns `None` for a file that does not exist.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
