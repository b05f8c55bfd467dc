//! The cache that all parts of a process share, in the default folder of the user.

use super::ObjectCache;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::object::ChunkedObject;
use crate::object::blocking::BlockingObject;
use crate::settings::Settings;
use nuthatch_chunks::Options;
use std::path::PathBuf;
use std::sync::Mutex;

/// The cache of [`ObjectCache::shared`].
static SHARED: Mutex<Option<ObjectCache>> = Mutex::new(None);

impl ObjectCache {
    /// Returns the cache in [`default_folder`], which the whole process shares. It is opened at the
    /// first call, with the limit that the folder has. A forked child opens its own.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Setup`] if [`default_folder`] returns `None`, and as
    /// [`ObjectCache::open`].
    pub fn shared() -> Result<Self> {
        let mut shared = lock(&SHARED);
        if let Some(cache) = shared.as_ref().filter(|cache| cache.engine.is_of_this_process()) {
            return Ok(cache.clone());
        }
        let reason = "none of NUTHATCH_CACHE, XDG_CACHE_HOME and HOME is set";
        let nowhere = || Error::Setup { what: "the shared cache", reason: reason.into() };
        let folder = default_folder().ok_or_else(nowhere)?;
        let cache = Self::open(folder, &Options::new(), Settings::new())?;
        *shared = Some(cache.clone());
        Ok(cache)
    }
}

impl ChunkedObject {
    /// Opens an object through [`ObjectCache::shared`].
    ///
    /// # Errors
    ///
    /// As [`ObjectCache::shared`] and [`ObjectCache::object`].
    pub async fn open(address: &str) -> Result<Self> {
        ObjectCache::shared()?.object(address).await
    }
}

impl BlockingObject {
    /// Opens an object through [`ObjectCache::shared`].
    ///
    /// # Errors
    ///
    /// As [`ObjectCache::shared`] and [`ObjectCache::object`].
    pub fn open(address: &str) -> Result<Self> {
        ObjectCache::shared()?.object_blocking(address)
    }
}

/// Returns the default folder of the cache: `$NUTHATCH_CACHE`, `nuthatch/chunks` below
/// `$XDG_CACHE_HOME`, or `~/.cache/nuthatch/chunks`. `None` if none of these variables is set.
pub fn default_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = variable("NUTHATCH_CACHE") {
        return Some(folder.into());
    }
    let caches = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let caches = caches.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
    Some(caches.join("nuthatch").join("chunks"))
}
