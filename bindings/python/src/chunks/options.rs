//! Conversion of keyword arguments into options of a folder.

use super::folder::{Folder, Limits};
use crate::convert::KeywordArguments;
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
    let arguments = KeywordArguments::new("Chunks", options);
    let mut settings = Options::new();
    let limits = Limits {
        limit: arguments.take("limit")?,
        min_free: arguments.take("min_free")?,
        shared: arguments.take("share_with_group")?,
    };
    if let Some(bytes) = arguments.take("segment_len")? {
        settings = settings.segment_len(bytes);
    }
    if let Some(count) = arguments.take("parts")? {
        settings = settings.parts(count);
    }
    if let Some(word) = arguments.take::<String>("check")? {
        settings = settings.check(check_of(&word)?);
    }
    if let Some(patience) = arguments.seconds("patience")? {
        settings = settings.patience(patience);
    }
    if let Some(count) = arguments.take("open_files")? {
        settings = settings.open_files(count);
    }
    if let Some(guard) = arguments.take("guard")? {
        settings = settings.guard(guard);
    }
    arguments.finish()?;
    py.detach(|| Folder::open(path, settings, limits)).map_err(|failure| failure.raise(py))
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
