//! Shards that tasks of a job upload, and the publication of their set, for `nuthatch.spark`.

use super::publish::{signing_key, trusted};
use super::work::apart;
use crate::failure::Outcome;
use crate::runtime::CallMode;
use nuthatch_clock::{Clock, SystemClock};
use nuthatch_delivery::{
    Delta, Destination, PublishOptions, Retention, ShardUploadOptions, ShardUploads, UploadedShard,
};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Hash of the earlier file, length, hash and object of a delta.
type DeltaFields = (String, u64, String, String);
/// Name, length, hash and object of a shard, whether the object is reused, and its delta.
type ShardFields = (String, u64, String, String, bool, Option<DeltaFields>);

fn fields(shard: UploadedShard) -> ShardFields {
    let UploadedShard { name, bytes, blake3, object, is_reused, delta } = shard;
    let delta = delta.map(|delta| (delta.from, delta.bytes, delta.blake3, delta.object));
    (name, bytes, blake3, object, is_reused, delta)
}

fn shard((name, bytes, blake3, object, is_reused, delta): ShardFields) -> UploadedShard {
    let delta = delta.map(|(from, bytes, blake3, object)| Delta { from, bytes, blake3, object });
    UploadedShard { name, bytes, blake3, object, is_reused, delta }
}

fn uploads(destination: &str, job: &str) -> Outcome<ShardUploads> {
    Ok(ShardUploads::new(Destination::open(destination)?, job)?)
}

/// Verifies and uploads shards of a set with this number of shards.
#[pyfunction]
#[pyo3(signature = (destination, job, files, shards, memory, /))]
pub(super) fn _upload_shards(
    py: Python<'_>,
    destination: String,
    job: String,
    files: Vec<PathBuf>,
    shards: usize,
    memory: usize,
) -> PyResult<Bound<'_, PyAny>> {
    let work = apart(async move {
        let options = ShardUploadOptions { shards, delta_limit: 1 << 30, delta_memory: memory };
        let uploaded = uploads(&destination, &job)?.upload(&files, options).await?;
        Ok(uploaded.into_iter().map(fields).collect::<Vec<_>>())
    });
    work.answer(py, CallMode::Sync)
}

/// Fetches the headers of uploaded shards into files of a folder, and returns their paths.
#[pyfunction]
#[pyo3(signature = (destination, job, shards, folder, /))]
pub(super) fn _fetch_headers(
    py: Python<'_>,
    destination: String,
    job: String,
    shards: Vec<ShardFields>,
    folder: PathBuf,
) -> PyResult<Bound<'_, PyAny>> {
    let work = apart(async move {
        let uploads = uploads(&destination, &job)?;
        let mut paths = Vec::new();
        for each in shards {
            paths.push(uploads.fetch_header(&shard(each), &folder).await?);
        }
        Ok(paths)
    });
    work.answer(py, CallMode::Sync)
}

/// Publishes a set of which shards were uploaded.
#[pyfunction]
#[pyo3(signature = (destination, job, file, shards, name, sign_key, trust_keys, keep, /))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(super) fn _publish_shards(
    py: Python<'_>,
    destination: String,
    job: String,
    file: PathBuf,
    shards: Vec<ShardFields>,
    name: Option<String>,
    sign_key: Option<PathBuf>,
    trust_keys: Vec<PathBuf>,
    keep: usize,
) -> PyResult<Bound<'_, PyAny>> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(SystemClock.now_ms());
    let work = apart(async move {
        let options = PublishOptions {
            signing_key: signing_key(sign_key.as_ref())?,
            trusted_keys: trusted(&trust_keys)?,
            retention: Retention { max_generations: keep, max_age: None },
            name,
            ..PublishOptions::at(now)
        };
        let shards: Vec<_> = shards.into_iter().map(shard).collect();
        let uploads = uploads(&destination, &job)?;
        Ok(uploads.publish(&file, &shards, &options, |_| {}).await?.generation)
    });
    work.answer(py, CallMode::Sync)
}

/// Removes the uploaded shards of a job that no generation has.
#[pyfunction]
#[pyo3(signature = (destination, job, /))]
pub(super) fn _remove_uploads(
    py: Python<'_>,
    destination: String,
    job: String,
) -> PyResult<Bound<'_, PyAny>> {
    let work = apart(async move { Ok(uploads(&destination, &job)?.remove().await?) });
    work.answer(py, CallMode::Sync)
}
