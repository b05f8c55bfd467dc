//! Shards that several machines build and upload, and the publication of their set by another one.

use super::deltas::{self, Made};
use super::source::{SourceFile, open};
use super::upload::{Uploaded, upload_object};
use super::uploaded::UploadedShard;
use super::{PublishOptions, Published, READ_BACK_LIMIT, publish_within};
use crate::delta::Limits;
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::manifest::{Delta, Manifest, is_plain_name};
use nuthatch_snapshot::Snapshot;
use nuthatch_trace_context::{Instrument, note_error, span};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Length of the header of a shard, from which the manifest of its set is made.
const HEADER_LEN: u64 = 512;
/// Maximum length of the name of a job: names of objects have 240 bytes, of which 64 are the hash.
const MAX_JOB_LEN: usize = 160;
/// What is between the hash and the job in the name of an object. Those of other publishers have
/// only a number there.
const JOB: &str = "job-";

/// Options for uploading shards.
#[derive(Clone, Copy, Debug)]
pub struct ShardUploadOptions {
    /// Number of shards of the set. There are deltas if the last generation has as many.
    pub shards: usize,
    /// Maximum length of a shard for which a delta is made; 0 for none.
    pub delta_limit: u64,
    /// Maximum memory of the build that checks a delta, in bytes.
    pub delta_memory: usize,
}

/// The shards of a job. Tasks on several machines upload them, each with its own `ShardUploads`.
///
/// An attempt that is repeated, or that runs twice at the same time, writes the same bytes to the
/// same object. Objects of a job that fails are removed by [`remove`](Self::remove). Those of a job
/// that is killed are removed by a later publication of a new generation, when they are at least a
/// day older than the newest object of the destination.
#[derive(Clone, Debug)]
pub struct ShardUploads {
    destination: Destination,
    job: String,
}

impl ShardUploads {
    /// Creates the uploads of a job. The name must be unique.
    ///
    /// # Errors
    /// Returns [`Error::Contents`] if `job` is empty, longer than 160 bytes, or not a valid file
    /// name.
    pub fn new(destination: Destination, job: &str) -> Result<Self> {
        if is_plain_name(job) && job.len() <= MAX_JOB_LEN {
            return Ok(Self { destination, job: job.to_owned() });
        }
        Err(Error::Contents {
            place: "the name of a job".to_owned(),
            expected: "1 to 160 bytes without a slash, a control character or a leading dot"
                .to_owned(),
            found: format!("{job:?}"),
        })
    }

    /// Verifies shards of a set and uploads them with their deltas. One whose contents an earlier
    /// generation has is not uploaded again.
    ///
    /// # Errors
    /// Returns [`Error::Snapshot`] if a file is not a valid shard, and the errors of reading the
    /// manifest and writing objects.
    pub async fn upload(
        &self,
        files: &[PathBuf],
        options: ShardUploadOptions,
    ) -> Result<Vec<UploadedShard>> {
        self.destination.check_writable()?;
        let read = self.destination.manifest(&[]).await?;
        let manifest = read.map(|read| read.envelope.manifest);
        let mut uploaded = Vec::new();
        for path in files {
            Snapshot::open(path)?.verify()?;
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let file = open(path, name)?;
            uploaded.push(match self.known(manifest.as_ref(), &file).await? {
                Some(known) => known,
                None => self.upload_new(manifest.as_ref(), &file, options).await?,
            });
        }
        Ok(uploaded)
    }

    /// Returns a shard that an earlier generation has, if its object is there.
    async fn known(
        &self,
        manifest: Option<&Manifest>,
        file: &SourceFile,
    ) -> Result<Option<UploadedShard>> {
        let known = manifest.into_iter().flat_map(|it| it.files_with(&file.blake3, file.bytes));
        for known in known {
            let read = if file.bytes <= READ_BACK_LIMIT {
                self.destination.object_is(known).await.ok()
            } else {
                None
            };
            let is_intact = match read {
                Some(is_intact) => is_intact,
                // Too long, or a store does not return it: only its length is checked.
                None => self.destination.object_bytes(&known.object).await? == Some(known.bytes),
            };
            if is_intact {
                let (object, delta) = (known.object.clone(), known.delta.clone());
                return Ok(Some(UploadedShard { is_reused: true, ..shard(file, object, delta) }));
            }
        }
        Ok(None)
    }

    async fn upload_new(
        &self,
        manifest: Option<&Manifest>,
        file: &SourceFile,
        options: ShardUploadOptions,
    ) -> Result<UploadedShard> {
        let suffix = format!("{JOB}{}", self.job);
        let object = upload_object(&self.destination, file, &suffix, |_| {}).await?;
        let mut uploaded = shard(file, object, None);
        let last = manifest.and_then(|manifest| manifest.generation(manifest.current));
        let Some(last) = last.filter(|last| last.files.len() == options.shards + 1) else {
            return Ok(uploaded);
        };
        let wanted = deltas::wanted_base(&uploaded.data_file(), last, true, options.delta_limit);
        let Some(base) = wanted else { return Ok(uploaded) };
        // Other tasks use the other processors.
        let (memory, entry_bytes) = (options.delta_memory, options.delta_limit);
        let limits = Limits { threads: 1, memory, entry_bytes };
        // Without a delta, followers fetch the whole shard.
        if let Ok(Made::Delta(made)) = deltas::make(&self.destination, file, base, limits).await {
            uploaded.delta = Some(made.upload(&self.destination, &suffix).await?);
        }
        Ok(uploaded)
    }

    /// Reads the header of a shard from its object, into a file of its name in a folder. The file
    /// has the length of the shard and no other bytes; it serves to make the set.
    ///
    /// # Errors
    /// Returns [`Error::Contents`] if the object is missing or too short, [`Error::Store`] if it
    /// cannot be read, and [`Error::Io`] if the file cannot be written.
    pub async fn fetch_header(&self, shard: &UploadedShard, folder: &Path) -> Result<PathBuf> {
        let read = self.destination.read(&shard.object, 0..HEADER_LEN.min(shard.bytes)).await?;
        let Some(header) = read else {
            return Err(shard.unexpected(&self.destination, "no such object"));
        };
        let bytes = header.len() as u64;
        if bytes < HEADER_LEN {
            let found = format!("{bytes} bytes, less than the header of a shard ({HEADER_LEN})");
            return Err(shard.unexpected(&self.destination, &found));
        }
        let path = folder.join(&shard.name);
        let write = || {
            let file = File::create(&path)?;
            file.write_all_at(&header, 0)?;
            file.set_len(shard.bytes)
        };
        write().map_err(|e| Error::io(&path, "write", e))?;
        Ok(path)
    }

    /// Publishes a set. The folder of its manifest has the files of
    /// [`fetch_header`](Self::fetch_header) for uploaded shards, and the other shards in full.
    ///
    /// # Errors
    /// Returns the errors of [`publish`](super::publish), and [`Error::Contents`] if an uploaded
    /// shard is missing or has another length.
    pub async fn publish(
        &self,
        file: &Path,
        shards: &[UploadedShard],
        options: &PublishOptions,
        progress: impl Fn(Uploaded),
    ) -> Result<Published> {
        let destination = &self.destination;
        let span = span!("publish", "internal", url.full = destination.address());
        let published = publish_within(destination, (file, shards), options, progress)
            .instrument(span.clone())
            .await;
        note_error(&span, &published);
        published
    }

    /// Removes the objects of the job that the manifest does not name: all, if its set was not
    /// published.
    ///
    /// # Errors
    /// Returns the errors of reading the manifest, and [`Error::Io`] or [`Error::Store`] if an
    /// object cannot be removed.
    pub async fn remove(&self) -> Result<()> {
        let read = self.destination.manifest(&[]).await?;
        let needed = read.as_ref().map(|read| read.envelope.manifest.objects());
        let needed = needed.unwrap_or_default();
        for object in self.destination.objects().await? {
            if self.is_of_job(&object.name) && !needed.contains(object.name.as_str()) {
                self.destination.remove(&object.name).await?;
            }
        }
        Ok(())
    }

    /// Returns whether an object is one of the job, or the temporary file of one.
    fn is_of_job(&self, object: &str) -> bool {
        let object = object.split('#').next().unwrap_or_default();
        let suffix = object.get(64..).and_then(|rest| rest.strip_prefix('-'));
        suffix.and_then(|suffix| suffix.strip_prefix(JOB)) == Some(&self.job)
    }
}

fn shard(file: &SourceFile, object: String, delta: Option<Delta>) -> UploadedShard {
    let (name, blake3) = (file.name.clone(), file.blake3.clone());
    UploadedShard { name, bytes: file.bytes, blake3, object, is_reused: false, delta }
}
