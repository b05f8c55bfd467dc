//! Conversion of keyword arguments into a condition on a key.

use crate::convert::KeywordArguments;
use crate::failure::Failure;
use nuthatch_store::Condition;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A condition on a key, with an owned value.
#[derive(Clone, Debug)]
pub(crate) enum OwnedCondition {
    Absent,
    Present,
    Equals(Vec<u8>),
    Version(u64),
}

impl OwnedCondition {
    /// Converts the condition of a call: exactly one of `absent`, `present`, `equals` and
    /// `version`.
    pub(crate) fn of(
        py: Python<'_>,
        call: &'static str,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let arguments = KeywordArguments::new(call, keywords);
        let mut conditions = Vec::new();
        if arguments.flag("absent")? {
            conditions.push(Self::Absent);
        }
        if arguments.flag("present")? {
            conditions.push(Self::Present);
        }
        conditions.extend(arguments.key("equals")?.map(Self::Equals));
        conditions.extend(arguments.take("version")?.map(Self::Version));
        arguments.finish()?;
        match (conditions.pop(), conditions.len()) {
            (Some(one), 0) => Ok(one),
            (_, more) => {
                let found = if more == 0 { "none" } else { "several" };
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
