//! Conversion of the durability of commits.

use crate::convert::KeywordArguments;
use nuthatch_store::Durability;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Converts the name of a durability: `sync`, `group` or `none`.
pub(crate) fn durability_of(word: &str) -> PyResult<Durability> {
    match word {
        "sync" => Ok(Durability::Sync),
        "group" => Ok(Durability::Group),
        "none" => Ok(Durability::None),
        _ => {
            let message = format!("durability: expected sync, group or none, found {word:?}");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Takes the argument `durability`; returns `None` if it is absent.
pub(crate) fn take_durability(arguments: &KeywordArguments<'_>) -> PyResult<Option<Durability>> {
    arguments.take::<String>("durability")?.map(|word| durability_of(&word)).transpose()
}
