//! Staged files of jobs, and downloads, for `nuthatch.spark`.

use super::publish::FileFields;
use super::work::apart;
use crate::runtime::CallMode;
use nuthatch_delivery::{DataFile, Destination, StagedFile, Staging, download};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Uploads a file of a job. Returns its length and its hash.
#[pyfunction]
#[pyo3(signature = (destination, job, file, name, /))]
pub(super) fn _stage_file(
    py: Python<'_>,
    destination: String,
    job: String,
    file: PathBuf,
    name: String,
) -> PyResult<Bound<'_, PyAny>> {
    let work = apart(async move {
        let staging = Staging::new(Destination::open(&destination)?, &job)?;
        let StagedFile { bytes, blake3 } = staging.put(&file, &name).await?;
        Ok((bytes, blake3))
    });
    work.answer(py, CallMode::Sync)
}

/// Downloads a file of a job, and verifies it.
#[pyfunction]
#[pyo3(signature = (destination, job, name, length, blake3, to, /))]
pub(super) fn _fetch_staged(
    py: Python<'_>,
    destination: String,
    job: String,
    name: String,
    length: u64,
    blake3: String,
    to: PathBuf,
) -> PyResult<Bound<'_, PyAny>> {
    let work = apart(async move {
        let staging = Staging::new(Destination::open(&destination)?, &job)?;
        Ok(staging.get(&name, &StagedFile { bytes: length, blake3 }, &to).await?)
    });
    work.answer(py, CallMode::Sync)
}

/// Removes all files of a job.
#[pyfunction]
#[pyo3(signature = (destination, job, /))]
pub(super) fn _remove_staged(
    py: Python<'_>,
    destination: String,
    job: String,
) -> PyResult<Bound<'_, PyAny>> {
    let work = apart(async move {
        let staging = Staging::new(Destination::open(&destination)?, &job)?;
        Ok(staging.remove().await?)
    });
    work.answer(py, CallMode::Sync)
}

/// Downloads a file of a generation, and verifies it.
#[pyfunction]
#[pyo3(signature = (destination, file, to, /))]
pub(super) fn _download(
    py: Python<'_>,
    destination: String,
    file: FileFields,
    to: PathBuf,
) -> PyResult<Bound<'_, PyAny>> {
    let (name, bytes, blake3, object) = file;
    let work = apart(async move {
        let file = DataFile { name, bytes, blake3, object, delta: None };
        Ok(download(&Destination::open(&destination)?, &file, &to).await?)
    });
    work.answer(py, CallMode::Sync)
}
