//! Local files as origins, mainly on slow disks and network filesystems.

use super::metadata::{Head, OpenedVersion, RangeResponse, Stamp};
use crate::clock::now;
use crate::error::Error;
use crate::retry::Fault;
use bytes::Bytes;
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::task::spawn_blocking;

/// The maximum number of bytes that one read returns.
const MAX_READ_LEN: u64 = 1 << 20;

/// How long a file must be unchanged before its times identify its version: the clock of a
/// filesystem advances in steps of a few milliseconds.
const SETTLED: Duration = Duration::from_millis(20);

/// A file.
#[derive(Debug)]
pub(crate) struct FileOrigin {
    path: PathBuf,
    address: String,
}

impl FileOrigin {
    pub(super) fn new(path: PathBuf, address: String) -> Self {
        Self { path, address }
    }

    async fn open(&self) -> Result<(File, Metadata), Fault> {
        let path = self.path.clone();
        let opened = blocking(move || {
            // Opening a pipe blocks until it has a writer, and opening a device may have any
            // effect.
            if !fs::metadata(&path)?.is_file() {
                return Ok(None);
            }
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            Ok(Some((file, metadata)))
        });
        let opened = opened.await.map_err(|error| fault(&self.address, &error))?;
        opened.ok_or_else(|| {
            let (address, expected) = (self.address.clone(), "a regular file");
            Error::Address { address, expected }.into()
        })
    }

    pub(super) async fn head(&self) -> Result<Head, Fault> {
        let (file, mut metadata) = self.open().await?;
        let file = Arc::new(file);
        // One wait suffices unless the file is being written all the time.
        let mut settled = unsettled_for(&metadata).is_zero();
        if !settled {
            tokio::time::sleep(unsettled_for(&metadata)).await;
            metadata = look(&file).await.map_err(|error| fault(&self.address, &error))?;
            settled = unsettled_for(&metadata).is_zero();
        }
        let stamp = stamp_of(&metadata);
        Ok(Head {
            len: Some(metadata.len()),
            validator: stamp.etag.clone().filter(|_| settled),
            stamp,
            modified: metadata.modified().ok(),
            content_type: None,
            ranges: true,
            stale_if_error: None,
        })
    }

    pub(super) async fn get(
        &self,
        range: Range<u64>,
        opened: &OpenedVersion,
    ) -> Result<RangeResponse<FileBody>, Fault> {
        let (file, metadata) = self.open().await?;
        opened.check(&stamp_of(&metadata), Some(metadata.len()))?;
        let rest = range.clone();
        let body = FileBody { file: Arc::new(file), rest, opened: opened.clone() };
        Ok(RangeResponse { range, body })
    }
}

/// Returns how much longer the file must be unchanged.
fn unsettled_for(metadata: &Metadata) -> Duration {
    let changed = u64::try_from(metadata.ctime()).unwrap_or_default();
    let changed = Duration::new(changed, metadata.ctime_nsec().try_into().unwrap_or_default());
    let age = now().duration_since(SystemTime::UNIX_EPOCH + changed);
    // A time in the future comes from the clock of another machine.
    age.map_or(Duration::ZERO, |age| SETTLED.saturating_sub(age))
}

/// Returns the identity of a file: device, inode, length and both times. Setting the time of
/// modification back changes the other time.
fn stamp_of(metadata: &Metadata) -> Stamp {
    let etag = format!(
        "\"{:x}-{:x}-{:x}-{:x}.{:x}-{:x}.{:x}\"",
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec()
    );
    Stamp { etag: Some(etag), modified: None }
}

async fn look(file: &Arc<File>) -> io::Result<Metadata> {
    let file = file.clone();
    blocking(move || file.metadata()).await
}

/// Runs work on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}

fn fault(address: &str, error: &io::Error) -> Fault {
    let address = address.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::NotFound { address }.into()
        }
        io::ErrorKind::PermissionDenied => {
            Error::Denied { address, reason: "by the operating system".into() }.into()
        }
        _ => Fault::broken(error.to_string()),
    }
}

/// The unread rest of a range of a file.
pub(crate) struct FileBody {
    file: Arc<File>,
    rest: Range<u64>,
    opened: OpenedVersion,
}

impl FileBody {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (file, start) = (self.file.clone(), self.rest.start);
        let len = (self.rest.end - start).min(MAX_READ_LEN);
        let read = blocking(move || {
            let mut bytes = vec![0; len as usize];
            file.read_exact_at(&mut bytes, start)?;
            // Read after the bytes, so that earlier changes are noticed.
            Ok((bytes, file.metadata()?))
        });
        let (bytes, metadata) = match read.await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.opened.changed("a shorter file").into());
            }
            read => read.map_err(|error| fault(&self.opened.address, &error))?,
        };
        self.opened.check(&stamp_of(&metadata), Some(metadata.len()))?;
        self.rest.start += len;
        Ok(Some(bytes.into()))
    }
}
