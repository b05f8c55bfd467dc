//! Publication, and the generations of a destination.

use super::work::apart;
use crate::convert::duration;
use crate::failure::Outcome;
use crate::runtime::{CallMode, Work};
use nuthatch_clock::{Clock, SystemClock};
use nuthatch_delivery::{
    DataFile, Destination, Generation, Manifest, PublishOptions, Retention, SigningKey, TrustedKey,
    generations, publish, roll_back,
};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The fields of a generation, in the order of `nuthatch.delivery.Generation`.
type GenerationFields =
    (u64, SystemTime, u64, u64, String, BTreeMap<String, String>, bool, Vec<FileFields>);
/// The fields of a file, in the order of `nuthatch.delivery.DataFile`.
pub(super) type FileFields = (String, u64, String, String);

/// Reads public keys.
pub(super) fn trusted(paths: &[PathBuf]) -> Outcome<Vec<TrustedKey>> {
    Ok(paths.iter().map(|path| TrustedKey::read(path)).collect::<Result<_, _>>()?)
}

/// Reads a private key, if there is one.
pub(super) fn signing_key(path: Option<&PathBuf>) -> Outcome<Option<SigningKey>> {
    Ok(path.map(|path| SigningKey::read(path)).transpose()?)
}

/// Publishes a snapshot.
#[pyfunction]
#[pyo3(signature = (
    mode, file, destination, name, sign_key, trust_keys, keep, keep_age, delta_limit, /
))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(super) fn _publish(
    py: Python<'_>,
    mode: CallMode,
    file: PathBuf,
    destination: String,
    name: Option<String>,
    sign_key: Option<PathBuf>,
    trust_keys: Vec<PathBuf>,
    keep: usize,
    keep_age: Option<f64>,
    delta_limit: u64,
) -> PyResult<Bound<'_, PyAny>> {
    let max_age = keep_age.map(|age| duration("keep_age", age)).transpose()?;
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(SystemClock.now_ms());
    let work = apart(async move {
        let options = PublishOptions {
            signing_key: signing_key(sign_key.as_ref())?,
            trusted_keys: trusted(&trust_keys)?,
            retention: Retention { max_generations: keep, max_age },
            name,
            delta_limit,
            ..PublishOptions::at(now)
        };
        let destination = Destination::open(&destination)?;
        Ok(publish(&destination, &file, &options, |_| {}).await?)
    });
    let fields = work.map(|done| {
        let bytes = (done.bytes, done.uploaded_bytes, done.delta_bytes);
        let generation = (done.generation, done.is_unchanged);
        let reasons = (done.delta_failures, done.unread_objects);
        (generation.0, generation.1, bytes, reasons, done.removed, done.cleanup_failure)
    });
    fields.answer(py, mode)
}

/// Returns the generations of a destination.
#[pyfunction]
#[pyo3(signature = (mode, destination, trust_keys, /))]
pub(super) fn _generations(
    py: Python<'_>,
    mode: CallMode,
    destination: String,
    trust_keys: Vec<PathBuf>,
) -> PyResult<Bound<'_, PyAny>> {
    let work = apart(async move {
        let trusted = trusted(&trust_keys)?;
        Ok(generations(&Destination::open(&destination)?, &trusted).await?)
    });
    listed(work).answer(py, mode)
}

/// Makes another generation the current one.
#[pyfunction]
#[pyo3(signature = (mode, destination, generation, sign_key, trust_keys, /))]
pub(super) fn _roll_back(
    py: Python<'_>,
    mode: CallMode,
    destination: String,
    generation: u64,
    sign_key: Option<PathBuf>,
    trust_keys: Vec<PathBuf>,
) -> PyResult<Bound<'_, PyAny>> {
    let work = apart(async move {
        let (key, trusted) = (signing_key(sign_key.as_ref())?, trusted(&trust_keys)?);
        let destination = Destination::open(&destination)?;
        Ok(roll_back(&destination, generation, key.as_ref(), &trusted).await?)
    });
    listed(work).answer(py, mode)
}

/// Converts a manifest into the fields of its generations.
fn listed(manifest: Work<Manifest>) -> Work<Vec<GenerationFields>> {
    manifest.map(|Manifest { current, generations, .. }| {
        generations.into_iter().map(|generation| fields(generation, current)).collect()
    })
}

fn fields(generation: Generation, current: u64) -> GenerationFields {
    let (bytes, name) = (generation.bytes(), generation.name().to_owned());
    let Generation { id, created, entries, metadata, files } = generation;
    let file = |DataFile { name, bytes, blake3, object, .. }| (name, bytes, blake3, object);
    let files = files.into_iter().map(file).collect();
    (id, created, entries, bytes, name, metadata, id == current, files)
}
