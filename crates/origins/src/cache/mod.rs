//! The cache that objects are read through.

pub(crate) mod shared;

use crate::access::Access;
use crate::address::Address;
use crate::counts::Counts;
use crate::engine::Engine;
use crate::engine::cache_folder::CacheFolder;
use crate::error::{Error, Result};
use crate::object::ChunkedObject;
use crate::object::blocking::{BlockingObject, wait};
use crate::opening::open;
use crate::origin::plain;
use crate::settings::{Freshness, Settings};
use nuthatch_chunks::{Chunks, Options};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A cache that objects are read through: a folder of chunks, clients of origins, and threads for
/// both. Cheap to clone. A forked child has none of the threads, and must open a cache of its own.
#[derive(Clone, Debug)]
pub struct ObjectCache {
    engine: Arc<Engine>,
    freshness: Freshness,
}

impl ObjectCache {
    /// Opens a folder, and creates it if it is missing or is removed while in use. While the folder
    /// cannot be opened, reads go to the origin, the log has one warning, and opening is retried at
    /// most once a second; see [`ObjectCache::folder_problem`].
    ///
    /// # Errors
    /// Fails if an option is out of range or would change a setting of a folder that can only be
    /// read, or if threads cannot be started.
    pub fn open(folder: impl AsRef<Path>, options: &Options, settings: Settings) -> Result<Self> {
        let folder = CacheFolder::open(folder.as_ref(), options, settings.threads)?;
        Self::with(folder, settings)
    }

    /// Returns a cache over a folder that is open already.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Setup`] if threads cannot be started.
    pub fn over(chunks: Arc<Chunks>, settings: Settings) -> Result<Self> {
        Self::with(CacheFolder::over(chunks, settings.threads)?, settings)
    }

    /// Returns a cache without a folder: all bytes are read from their origins.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Setup`] if threads cannot be started.
    pub fn without_folder(settings: Settings) -> Result<Self> {
        Self::with(CacheFolder::none(), settings)
    }

    fn with(folder: CacheFolder, settings: Settings) -> Result<Self> {
        let freshness = settings.freshness;
        Ok(Self { engine: Arc::new(Engine::new(folder, settings)?), freshness })
    }

    /// Returns a handle on the same cache with another value of [`Settings::offline`].
    #[must_use]
    pub fn offline(&self, offline: bool) -> Self {
        let freshness = Freshness { offline, ..self.freshness };
        Self { freshness, ..self.clone() }
    }

    /// Returns a handle on the same cache with another value of [`Settings::max_stale`]; `None` for
    /// what the origin allows.
    #[must_use]
    pub fn max_stale(&self, max_stale: Option<Duration>) -> Self {
        let freshness = Freshness { max_stale, ..self.freshness };
        Self { freshness, ..self.clone() }
    }

    /// Returns the chunks in the folder, or `None` while it cannot be opened.
    pub fn chunks(&self) -> Option<Arc<Chunks>> {
        self.engine.folder.last().map(|tasks| tasks.chunks().clone())
    }

    /// Returns the error with which the folder cannot be opened, or `None` if it is open.
    /// Meanwhile, reads go to the origin.
    pub fn folder_problem(&self) -> Option<Error> {
        self.engine.folder.problem()
    }

    /// Waits until all blocks and responses that arrived before the call are in the folder, as far
    /// as they can be stored. If the process ends before that, they are lost and fetched again.
    pub fn wait_for_puts(&self) {
        if let Some(tasks) = self.engine.folder.last() {
            tasks.wait_for_puts();
        }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.engine.settings
    }

    /// Returns the counts of the whole cache: of all its handles, including those of
    /// [`offline`](Self::offline) and [`max_stale`](Self::max_stale).
    pub fn counts(&self) -> Counts {
        self.engine.tally.counts()
    }

    /// Opens the object at an address: `http://` or `https://`, `s3://bucket/key`,
    /// `gs://bucket/key`, `az://container/path` or `abfss://`, `file://` or a path. Requests its
    /// length and validator from the origin, unless a recent response can be used: see
    /// [`Settings::max_age`].
    ///
    /// # Errors
    ///
    /// - [`Error::Address`]: the address is not valid;
    /// - [`Error::NotFound`] or [`Error::Denied`]: the origin has no such object or denies access;
    /// - [`Error::Unreachable`], [`Error::Status`] or [`Error::Response`]: after all retries, the
    ///   origin sent no usable response, and the cache has no version that may be used instead;
    /// - [`Error::Offline`]: the origin must not be contacted, and the cache has no version;
    /// - [`Error::Setup`]: the client of the origin cannot be created, or the process was forked.
    pub async fn object(&self, address: &str) -> Result<ChunkedObject> {
        self.object_as(address, &Access::new()).await
    }

    /// Opens an object like [`ObjectCache::object`], with headers for the origin.
    ///
    /// # Errors
    ///
    /// As [`ObjectCache::object`], and [`Error::Address`] if a header is not valid.
    pub async fn object_as(&self, address: &str, access: &Access) -> Result<ChunkedObject> {
        let version = open(&self.engine, address, access, self.freshness).await?;
        Ok(ChunkedObject::new(Arc::new(version)))
    }

    /// Opens an object like [`ObjectCache::object`], for a thread that may block.
    ///
    /// # Errors
    ///
    /// As [`ObjectCache::object`].
    pub fn object_blocking(&self, address: &str) -> Result<BlockingObject> {
        self.object_blocking_as(address, &Access::new())
    }

    /// Opens an object like [`ObjectCache::object_as`], for a thread that may block.
    ///
    /// # Errors
    ///
    /// As [`ObjectCache::object_as`].
    pub fn object_blocking_as(&self, address: &str, access: &Access) -> Result<BlockingObject> {
        let version = wait(open(&self.engine, address, access, self.freshness))?;
        Ok(BlockingObject::new(Arc::new(version)))
    }
}

/// Returns an address in the form in which the cache stores and lists it: without user and
/// password, without parameters that only sign a request, and with a hash in place of other
/// parameters.
///
/// # Errors
///
/// Fails with [`Error::Address`] if the address is not valid.
pub fn plain_address(address: &str) -> Result<String> {
    Ok(plain(Address::parse(address)?))
}
