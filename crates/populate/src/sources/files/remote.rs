//! Objects in stores, and files of web servers. All bytes that are read are of one version.

use crate::error::{Error, Result};
use crate::interruption::Interruption;
use bytes::Bytes;
use nuthatch_import::Pattern;
use nuthatch_origins::{StoreClient, store_client, store_failure};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt};
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Number of bytes of a request.
const REQUEST_BYTES: u64 = 8 << 20;

/// A remote file of one version.
#[derive(Clone)]
pub(super) struct Remote {
    client: Arc<StoreClient>,
    path: Path,
    len: u64,
    e_tag: Option<String>,
    interruption: Interruption,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Returns the runtime of all requests.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let built = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let built = built.map_err(|error| Error::System(format!("start a runtime: {error}")))?;
    Ok(RUNTIME.get_or_init(|| built))
}

/// Returns the files in a remote folder: the one of this name, or those that match the pattern.
pub(super) fn list(
    (folder, name): (&str, &str),
    pattern: Option<&Pattern>,
    interruption: &Interruption,
) -> Result<Vec<(String, Remote)>> {
    let place = |name: &str| format!("{}/{name}", folder.split('?').next().unwrap_or_default());
    let fault = |error: &object_store::Error| Error::Source {
        source: place(name),
        message: store_failure(error),
        is_transient: !matches!(error, object_store::Error::NotFound { .. }),
    };
    let setup = |error: nuthatch_origins::Error| Error::source(&place(name), error.to_string());
    let client = Arc::new(store_client(folder).map_err(setup)?);
    let runtime = runtime()?;
    let remote = |meta: object_store::ObjectMeta| Remote {
        client: Arc::clone(&client),
        path: meta.location,
        len: meta.size,
        e_tag: meta.e_tag,
        interruption: interruption.clone(),
    };
    let Some(pattern) = pattern else {
        let path = client.path.clone().join(name);
        let meta = runtime
            .block_on(interruption.or(client.store.head(&path)))?
            .map_err(|error| fault(&error))?;
        return Ok(vec![(place(name), remote(meta))]);
    };
    let prefix = Some(&client.path);
    let listed = runtime.block_on(interruption.or(client.store.list_with_delimiter(prefix)))?;
    let objects = listed.map_err(|error| fault(&error))?.objects;
    let matching = objects.into_iter().filter_map(|meta| {
        let file_name = meta.location.filename()?.to_owned();
        pattern.matches(file_name.as_bytes()).then(|| (place(&file_name), remote(meta)))
    });
    Ok(matching.collect())
}

impl Remote {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn reader(&self) -> RemoteReader {
        RemoteReader { remote: self.clone(), chunk: Bytes::new(), chunk_at: 0, ahead: None }
    }

    /// Reads a range.
    pub(super) fn range(&self, range: Range<u64>) -> io::Result<Bytes> {
        self.wait(self.clone().fetch(range))
    }

    /// Waits for the response to a request, or for an interruption of the job.
    fn wait<T>(&self, request: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let other = |error: Error| io::Error::other(error.to_string());
        runtime().map_err(other)?.block_on(self.interruption.or(request)).map_err(other)?
    }

    async fn fetch(self, range: Range<u64>) -> io::Result<Bytes> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: self.e_tag.clone(),
            ..GetOptions::default()
        };
        let fault = |error: object_store::Error| match error {
            object_store::Error::Precondition { .. } => {
                io::Error::other("it was replaced while it was read")
            }
            error => io::Error::other(store_failure(&error)),
        };
        let found = self.client.store.get_opts(&self.path, options).await.map_err(fault)?;
        found.bytes().await.map_err(fault)
    }
}

/// A reader that fetches the next bytes ahead.
#[derive(Debug)]
pub(super) struct RemoteReader {
    remote: Remote,
    chunk: Bytes,
    chunk_at: u64,
    /// The request for the next bytes, with their offset.
    ahead: Option<(u64, JoinHandle<io::Result<Bytes>>)>,
}

impl RemoteReader {
    pub(super) fn read_at(&mut self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        if at >= self.remote.len {
            return Ok(0);
        }
        let chunk_end = self.chunk_at + self.chunk.len() as u64;
        if !(self.chunk_at..chunk_end).contains(&at) {
            self.load(at)?;
        }
        let available = &self.chunk[(at - self.chunk_at) as usize..];
        let count = available.len().min(buffer.len());
        buffer[..count].copy_from_slice(&available[..count]);
        Ok(count)
    }

    /// Loads the bytes at an offset, and requests those after them.
    fn load(&mut self, at: u64) -> io::Result<()> {
        self.chunk = match self.ahead.take() {
            Some((ahead_at, request)) if ahead_at == at => {
                self.remote.wait(async { request.await.map_err(io::Error::other)? })?
            }
            _ => self.remote.range(self.range_from(at))?,
        };
        self.chunk_at = at;
        if self.chunk.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let next = at + self.chunk.len() as u64;
        if next < self.remote.len {
            let request = self.remote.clone().fetch(self.range_from(next));
            let runtime = runtime().map_err(|error| io::Error::other(error.to_string()))?;
            self.ahead = Some((next, runtime.spawn(request)));
        }
        Ok(())
    }

    fn range_from(&self, at: u64) -> Range<u64> {
        at..(at + REQUEST_BYTES).min(self.remote.len)
    }
}
