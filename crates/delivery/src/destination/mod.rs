//! Destinations: a folder, or a path in an object store.

mod files;
mod lock;
mod new_file;
mod transfer;

pub(crate) use new_file::NewFile;

use crate::envelope::{self, Envelope};
use crate::error::{Error, Result};
use crate::manifest::{MAX_BYTES, Manifest};
use crate::signature::{SigningKey, TrustedKey};
use bytes::Bytes;
use futures_util::TryStreamExt;
use lock::FolderLock;
use nuthatch_origins::{StoreClient, store_failure};
use object_store::local::LocalFileSystem;
use object_store::path::Path as StorePath;
use object_store::{
    GetOptions, GetResult, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion,
};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// The name of the manifest.
const MANIFEST: &str = "manifest.json";
/// The folder of the objects.
const OBJECTS: &str = "objects";

/// A place for the generations of one snapshot: a folder, or a path in an object store.
#[derive(Clone)]
pub struct Destination {
    store: Arc<dyn ObjectStore>,
    path: StorePath,
    /// The folder, if it is one of a filesystem.
    folder: Option<PathBuf>,
    address: String,
    is_read_only: bool,
}

/// A manifest that was read, and its version in the store.
pub(crate) struct ReadManifest {
    pub(crate) envelope: Envelope,
    pub(crate) version: ObjectVersion,
}

/// The version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectVersion(UpdateVersion);

impl ObjectVersion {
    /// Returns the version of a response.
    fn of(response: &GetResult) -> Self {
        let (e_tag, version) = (response.meta.e_tag.clone(), response.meta.version.clone());
        Self(UpdateVersion { e_tag, version })
    }
}

/// The response to a request for the manifest.
enum Found {
    Manifest(Box<ReadManifest>),
    /// It still has the version that the caller knows.
    Known,
    Nothing,
}

/// An object that a destination has.
pub(crate) struct StoredObject {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
}

impl Destination {
    /// Opens a destination: a folder, or an address such as `s3://bucket/path`, `gs://` or `az://`.
    /// Followers can also use that of an HTTP server which serves such a folder.
    /// Credentials come from the environment, as for the store's own tools.
    ///
    /// # Errors
    /// Returns [`Error::Address`] if the address or a setting in the environment is invalid.
    pub fn open(address: &str) -> Result<Self> {
        if address.contains("://") && !address.starts_with("file://") {
            let StoreClient { store, path, address, is_read_only } =
                nuthatch_origins::store_client(address)?;
            return Ok(Self { store, path, folder: None, address, is_read_only });
        }
        let folder = PathBuf::from(address.strip_prefix("file://").unwrap_or(address));
        let folder = files::resolve(&folder)?;
        // Relative to the root, since the folder is created only when it is published to.
        let path = StorePath::from_absolute_path(&folder).map_err(|e| Error::Store {
            operation: "open",
            object: folder.display().to_string(),
            reason: e.to_string(),
        })?;
        let store = Arc::new(LocalFileSystem::new());
        let address = folder.display().to_string();
        Ok(Self { store, path, folder: Some(folder), address, is_read_only: false })
    }

    /// Returns the address, without secrets.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Fails if nothing can be published here.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if !self.is_read_only {
            return Ok(());
        }
        Err(Error::Store {
            operation: "publish",
            object: self.address.clone(),
            reason: "an HTTP server is for followers; publish to the folder or the store that it \
                     serves"
                .to_owned(),
        })
    }

    /// Returns the address of the manifest.
    pub(crate) fn manifest_address(&self) -> String {
        format!("{}/{MANIFEST}", self.address)
    }

    /// Returns the address of an object.
    pub(crate) fn object_address(&self, object: &str) -> String {
        format!("{}/{OBJECTS}/{object}", self.address)
    }

    fn object_path(&self, object: &str) -> StorePath {
        self.path.clone().join(OBJECTS).join(object)
    }

    /// Reads the manifest. Returns `None` if there is none.
    pub(crate) async fn manifest(&self, trusted: &[TrustedKey]) -> Result<Option<ReadManifest>> {
        match self.get_manifest(GetOptions::default(), trusted).await? {
            Found::Manifest(read) => Ok(Some(*read)),
            Found::Nothing | Found::Known => Ok(None),
        }
    }

    /// Reads the manifest, unless it has this version. Returns `None` if it has.
    ///
    /// # Errors
    /// Returns [`Error::NothingPublished`] if there is none.
    pub(crate) async fn newer_manifest(
        &self,
        than: Option<&ObjectVersion>,
        trusted: &[TrustedKey],
    ) -> Result<Option<ReadManifest>> {
        let if_none_match = than.and_then(|version| version.0.e_tag.clone());
        let options = GetOptions { if_none_match, ..GetOptions::default() };
        match self.get_manifest(options, trusted).await? {
            Found::Manifest(read) => Ok(Some(*read)),
            Found::Known => Ok(None),
            Found::Nothing => Err(Error::NothingPublished { destination: self.address.clone() }),
        }
    }

    async fn get_manifest(&self, options: GetOptions, trusted: &[TrustedKey]) -> Result<Found> {
        let address = self.manifest_address();
        if let Some(folder) = &self.folder {
            files::check_regular(&folder.join(MANIFEST))?;
        }
        let failed = |e| failure("read", &address, &e);
        let path = self.path.clone().join(MANIFEST);
        let response = match self.store.get_opts(&path, options).await {
            Ok(response) => response,
            Err(object_store::Error::NotFound { .. }) => return Ok(Found::Nothing),
            Err(object_store::Error::NotModified { .. }) => return Ok(Found::Known),
            Err(error) => return Err(failed(error)),
        };
        if response.meta.size > MAX_BYTES {
            return Err(Error::Manifest {
                manifest: address,
                expected: format!("at most {MAX_BYTES} bytes"),
                found: format!("{} bytes", response.meta.size),
            });
        }
        let version = ObjectVersion::of(&response);
        let bytes = response.bytes().await.map_err(failed)?;
        let envelope = envelope::decode(&bytes, &address, trusted)?;
        Ok(Found::Manifest(Box::new(ReadManifest { envelope, version })))
    }

    /// Replaces the manifest, if it is still the one that was read. `None` is for a destination
    /// that had none. In a folder, its mode is at most this one; without one, as before.
    ///
    /// # Errors
    /// Returns [`Error::Conflict`] if another publisher replaced the manifest meanwhile.
    pub(crate) async fn replace_manifest(
        &self,
        manifest: &Manifest,
        key: Option<&SigningKey>,
        read: Option<&ReadManifest>,
        mode: Option<u32>,
    ) -> Result<()> {
        let address = self.manifest_address();
        manifest.check(&address)?;
        let text = envelope::encode(manifest, key);
        if text.len() as u64 > MAX_BYTES {
            return Err(Error::Manifest {
                manifest: address,
                expected: format!("at most {MAX_BYTES} bytes"),
                found: format!("{} bytes; keep fewer generations (--keep)", text.len()),
            });
        }
        match &self.folder {
            None => self.put_manifest(text, read, &address).await,
            Some(folder) => {
                // Local filesystems have no conditional replacement: a lock takes its place.
                files::check_regular(&folder.join(lock::NAME))?;
                let _lock = FolderLock::acquire(folder).await?;
                let now = self.manifest(&[]).await?;
                if now.map(|now| now.version) != read.map(|read| read.version.clone()) {
                    return Err(Error::Conflict { manifest: address });
                }
                // Publishers write this file only while they have the lock.
                files::remove_temporary(folder, MANIFEST);
                let mode = mode.unwrap_or_else(|| files::mode(&folder.join(MANIFEST)));
                let mut new = NewFile::create(folder, MANIFEST, mode)?;
                new.write(text.as_bytes())?;
                new.publish()
            }
        }
    }

    async fn put_manifest(
        &self,
        text: String,
        read: Option<&ReadManifest>,
        address: &str,
    ) -> Result<()> {
        let mode = read.map_or(PutMode::Create, |read| PutMode::Update(read.version.0.clone()));
        let options = PutOptions { mode, ..PutOptions::default() };
        let path = self.path.clone().join(MANIFEST);
        let Err(error) = self.store.put_opts(&path, text.clone().into(), options).await else {
            return Ok(());
        };
        // A request may have succeeded although its response was lost, and been repeated.
        if let Ok(found) = self.store.get(&path).await
            && found.bytes().await.is_ok_and(|found| found == text.as_bytes())
        {
            return Ok(());
        }
        Err(match error {
            object_store::Error::AlreadyExists { .. }
            | object_store::Error::Precondition { .. } => {
                Error::Conflict { manifest: address.to_owned() }
            }
            error => failure("write", address, &error),
        })
    }

    /// Creates the file of an object, if the destination is a folder. Its mode is at most this one.
    pub(crate) fn new_file(&self, object: &str, mode: u32) -> Option<Result<NewFile>> {
        let folder = self.folder.as_ref()?.join(OBJECTS);
        Some(NewFile::create(&folder, object, mode))
    }

    /// Returns the path of an object, if the destination is a folder.
    pub(crate) fn local_object(&self, object: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(OBJECTS).join(object))
    }

    /// Fails if the destination is a folder, and something else than a file is in the place of an
    /// object.
    fn check_regular(&self, object: &str) -> Result<()> {
        self.local_object(object).map_or(Ok(()), |path| files::check_regular(&path))
    }

    /// Writes an object to a store.
    pub(crate) async fn put(&self, object: &str, bytes: Bytes) -> Result<()> {
        let written = self.store.put(&self.object_path(object), bytes.into()).await;
        written.map(drop).map_err(|e| self.object_failure("write", object, &e))
    }

    /// Starts the upload of an object to a store.
    pub(crate) async fn upload(
        &self,
        object: &str,
    ) -> Result<Box<dyn object_store::MultipartUpload>> {
        let started = self.store.put_multipart(&self.object_path(object)).await;
        started.map_err(|e| self.object_failure("write", object, &e))
    }

    /// Reads a range of an object. Returns `None` if the object does not exist.
    pub(crate) async fn read(&self, object: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        self.check_regular(object)?;
        match self.store.get_range(&self.object_path(object), range).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.object_failure("read", object, &error)),
        }
    }

    /// Returns the length of an object. Returns `None` if the object does not exist.
    pub(crate) async fn object_bytes(&self, object: &str) -> Result<Option<u64>> {
        match self.store.head(&self.object_path(object)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.object_failure("read", object, &error)),
        }
    }

    /// Lists all objects. In a folder, these include the files of uploads that did not end.
    pub(crate) async fn objects(&self) -> Result<Vec<StoredObject>> {
        let prefix = self.path.clone().join(OBJECTS);
        if let Some(folder) = &self.folder {
            return files::list(&folder.join(OBJECTS));
        }
        let listed: Vec<_> = self
            .store
            .list(Some(&prefix))
            .try_collect()
            .await
            .map_err(|e| failure("list", &format!("{}/{OBJECTS}", self.address), &e))?;
        let objects = listed.into_iter().filter_map(|found| {
            let name = found.location.filename()?.to_owned();
            let modified = found.last_modified.into();
            Some(StoredObject { name, bytes: found.size, modified })
        });
        Ok(objects.collect())
    }

    /// Removes an object, if it exists.
    pub(crate) async fn remove(&self, object: &str) -> Result<()> {
        if let Some(folder) = &self.folder {
            return files::remove(&folder.join(OBJECTS).join(object));
        }
        match self.store.delete(&self.object_path(object)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.object_failure("remove", object, &error)),
        }
    }

    pub(crate) fn object_failure(
        &self,
        operation: &'static str,
        object: &str,
        error: &object_store::Error,
    ) -> Error {
        failure(operation, &self.object_address(object), error)
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("address", &self.address).finish_non_exhaustive()
    }
}

fn failure(operation: &'static str, object: &str, error: &object_store::Error) -> Error {
    Error::Store { operation, object: object.to_owned(), reason: store_failure(error) }
}
