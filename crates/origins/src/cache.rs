//! A cache that objects are read through.

use crate::access::Access;
use crate::blocking::BlockingObject;
use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::object::ChunkedObject;
use crate::settings::Settings;
use nuthatch_chunks::{Chunks, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A cache that objects are read through: a folder of chunks, the clients of origins, and the
/// threads that serve both. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ObjectCache {
    chunks: Arc<Chunks>,
    settings: Settings,
}

impl ObjectCache {
    /// Opens a folder, which is made if there is none.
    pub fn open(folder: impl AsRef<Path>, options: &Options, settings: Settings) -> Result<Self> {
        Self::over(Arc::new(Chunks::open(folder, options)?), settings)
    }

    /// Reads through a folder that is open already.
    pub fn over(chunks: Arc<Chunks>, settings: Settings) -> Result<Self> {
        Ok(Self { chunks, settings })
    }

    /// The cache in [`default_folder`], which the whole process shares; opened when it is first
    /// asked for, with the limit that the folder has.
    pub fn shared() -> Result<Self> {
        Err(unfinished())
    }

    /// The folder.
    pub fn chunks(&self) -> &Arc<Chunks> {
        &self.chunks
    }

    /// How objects are read.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What was read through this handle and its clones.
    pub fn counts(&self) -> Counts {
        Counts::default()
    }

    /// Opens an object: `http://` and `https://`, `s3://bucket/key`, `gs://bucket/key`,
    /// `az://container/path` and `abfss://`, `file://` and paths. Its origin is asked for its length
    /// and its validator, unless [`Settings::believe`] makes that needless.
    pub async fn object(&self, address: &str) -> Result<ChunkedObject> {
        self.object_as(address, &Access::new()).await
    }

    /// As [`ObjectCache::object`], for an origin that wants to be shown something.
    pub async fn object_as(&self, _address: &str, _access: &Access) -> Result<ChunkedObject> {
        Err(unfinished())
    }

    /// As [`ObjectCache::object`], for a thread that may wait.
    pub fn object_blocking(&self, address: &str) -> Result<BlockingObject> {
        self.object_blocking_as(address, &Access::new())
    }

    /// As [`ObjectCache::object_as`], for a thread that may wait.
    pub fn object_blocking_as(&self, _address: &str, _access: &Access) -> Result<BlockingObject> {
        Err(unfinished())
    }
}

fn unfinished() -> Error {
    Error::Setup { what: "reading", reason: "this part is not there yet".into() }
}

/// The folder of this user's cache: `$NUTHATCH_CACHE`, or `nuthatch/chunks` below
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

/// The address that an object has in the cache, as lists of the cache show it: without user and
/// password, without parameters that only sign a request, and with a hash for other parameters.
pub fn plain_address(_address: &str) -> Result<String> {
    Err(unfinished())
}
