//! Conversion of keyword arguments into a condition on a key.

use crate::failure::Failure;
use crate::named::Named;
use nuthatch_store::Condition;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A condition on a key, with an owned value.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Absent,
    Present,
    Equals(Vec<u8>),
    Version(u64),
}

impl Wanted {
    /// Converts the condition of a call: exactly one of `absent`, `present`, `equals` and
    /// `version`.
    pub(crate) fn of(
        py: Python<'_>,
        call: &'static str,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let named = Named::new(call, given);
        let mut wanted = Vec::new();
        if named.is_wanted("absent")? {
            wanted.push(Self::Absent);
        }
        if named.is_wanted("present")? {
            wanted.push(Self::Present);
        }
        wanted.extend(named.key("equals")?.map(Self::Equals));
        wanted.extend(named.take("version")?.map(Self::Version));
        named.finish()?;
        match (wanted.pop(), wanted.len()) {
            (Some(one), 0) => Ok(one),
            (_, others) => {
                let found = if others == 0 { "none" } else { "several" };
                let message = format!(
                    "expected one of absent=True, present=True, equals and version, found {found}"
                );
                Err(Failure::argument(message).raise(py))
            }
        }
    }

    pub(crate) fn condition(&self) -> Condition<'_> {
        match self {
            Self::Absent => Condition::Absent,
            Self::Present => Condition::Present,
            Self::Equals(value) => Condition::Equals(value),
            Self::Version(version) => Condition::Version(*version),
        }
    }
}
