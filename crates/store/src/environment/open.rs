//! Opens environments of LMDB. This file has unsafe code: heed requires it for calls that can break
//! LMDB's assumptions.

use super::links::Links;
use crate::error::{Error, Result};
use crate::file::check::check_file;
use crate::file::page_multiple;
use crate::options::Options;
use crate::process::{Owner, registry};
use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};
use std::io::ErrorKind::OutOfMemory;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::path::Path;

/// Minimum free bytes of the map beyond the data.
pub(super) const MIN_FREE_BYTES: u64 = 16 << 20;

/// An environment of heed. A child made by `fork` does not close it.
pub(crate) struct OpenEnv {
    pub(super) owner: Owner,
    env: ManuallyDrop<Env<WithoutTls>>,
}

impl Deref for OpenEnv {
    type Target = Env<WithoutTls>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.env
    }
}

impl Drop for OpenEnv {
    fn drop(&mut self) {
        if self.owner.is_this() {
            let _registry = registry::lock();
            // SAFETY: it is dropped only here, once.
            unsafe { ManuallyDrop::drop(&mut self.env) };
        }
    }
}

/// Opens an environment with the requested address space, or with as much as the system provides.
pub(super) fn open_mapped(path: &Path, options: &Options, used: u64) -> Result<OpenEnv> {
    // A limit below the bytes in use only keeps the file from growing.
    let min_size = page_multiple(used + if options.limit.is_some() { 0 } else { MIN_FREE_BYTES });
    let mut size = page_multiple(options.first_map()).max(page_multiple(used));
    loop {
        let mut open = EnvOpenOptions::new().read_txn_without_tls();
        open.map_size(size as usize).max_readers(options.readers).max_dbs(options.tables + 4);
        if options.read_only {
            // SAFETY: a read-only map has no requirements.
            unsafe { open.flags(EnvFlags::READ_ONLY) };
        }
        // SAFETY: the two pages that LMDB reads when it opens were checked. Other processes change
        // the file only through LMDB, as the documentation of `Store` requires.
        let opened = unsafe { open_env(&open, path) };
        match opened {
            Ok(env) => return Ok(env),
            Err(heed::Error::Io(e)) if e.kind() == OutOfMemory && size / 2 >= min_size => {
                size = page_multiple(size / 2);
            }
            Err(error) => return Err(Error::of(path, "open", error)),
        }
    }
}

/// Opens an environment that this process does not have open.
///
/// # Safety
/// As for [`EnvOpenOptions::open`].
unsafe fn open_env(options: &EnvOpenOptions<WithoutTls>, folder: &Path) -> heed::Result<OpenEnv> {
    let _registry = registry::lock();
    let links;
    let mut path = folder;
    if heed::env_closing_event(folder).is_some() {
        // heed has another environment open at this path: one of a parent process, inherited by a
        // child made by `fork`, or one whose folder was removed. Symbolic links provide another
        // path.
        links = Links::to(folder)?;
        path = links.path();
    }
    // SAFETY: the caller ensures it.
    let env = unsafe { options.open(path) }?;
    Ok(OpenEnv { owner: Owner::this(), env: ManuallyDrop::new(env) })
}

/// Opens a store for reading without locks. The caller has the exclusive lock.
pub(crate) fn open_without_locks(folder: &Path) -> Result<OpenEnv> {
    let options = Options::new().read_only(true);
    let used = check_file(folder, &options)?;
    let mut open = EnvOpenOptions::new().read_txn_without_tls();
    open.map_size(page_multiple(used.max(1)) as usize);
    // SAFETY: no process writes: the caller has the lock that every writer takes.
    unsafe { open.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK) };
    // SAFETY: as above, and the pages that LMDB reads when it opens were checked.
    let opened = unsafe { open_env(&open, folder) };
    opened.map_err(|e| Error::of(folder, "open", e))
}

/// Creates an environment with LMDB alone.
#[cfg(test)]
pub(crate) fn open_for_test(options: &EnvOpenOptions<heed::WithTls>, folder: &Path) {
    // SAFETY: the folder of a test, which nothing else uses.
    drop(unsafe { options.open(folder) }.expect("an environment"));
}
