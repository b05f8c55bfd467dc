//! Conversion of keyword arguments into options of a folder.

use super::folder::{Folder, Limits};
use crate::named::Named;
use nuthatch_chunks::{Check, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Opens a folder with options from keyword arguments.
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Folder> {
    let named = Named::new("Chunks", options);
    let mut wanted = Options::new();
    let limits = Limits {
        limit: named.take("limit")?,
        min_free: named.take("min_free")?,
        shared: named.take("share_with_group")?,
    };
    if let Some(bytes) = named.take("segment_len")? {
        wanted = wanted.segment_len(bytes);
    }
    if let Some(count) = named.take("parts")? {
        wanted = wanted.parts(count);
    }
    if let Some(word) = named.take::<String>("check")? {
        wanted = wanted.check(check_of(&word)?);
    }
    if let Some(patience) = named.seconds("patience")? {
        wanted = wanted.patience(patience);
    }
    if let Some(count) = named.take("open_files")? {
        wanted = wanted.open_files(count);
    }
    if let Some(guard) = named.take("guard")? {
        wanted = wanted.guard(guard);
    }
    named.finish()?;
    py.detach(|| Folder::open(path, wanted, limits)).map_err(|failure| failure.raise(py))
}

/// Converts the value of the option `check`.
fn check_of(word: &str) -> PyResult<Check> {
    match word {
        "never" => Ok(Check::Never),
        "once" => Ok(Check::Once),
        "always" => Ok(Check::Always),
        _ => {
            let message = format!("check: expected never, once or always, found {word:?}");
            Err(PyValueError::new_err(message))
        }
    }
}
