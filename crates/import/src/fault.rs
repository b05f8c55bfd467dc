//! Faults of a row while it is parsed, by offset. [`TextCursor`](crate::text::TextCursor) turns
//! offsets into lines and columns.

use crate::error::RowError;
use std::borrow::Cow;

/// The result of scanning text.
pub(crate) type Scan<T> = Result<T, Fault>;

/// Invalid text at an offset. Boxed, because every scanning function returns one, and a run has at
/// most one.
#[derive(Debug)]
pub(crate) struct Fault(Box<Details>);

#[derive(Debug)]
struct Details {
    /// The offset in bytes from the start of the text or of the field that is parsed.
    at: usize,
    expected: Cow<'static, str>,
    found: String,
}

impl Fault {
    #[cold]
    pub(crate) fn new(
        at: usize,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<String>,
    ) -> Self {
        Self(Box::new(Details { at, expected: expected.into(), found: found.into() }))
    }

    /// Returns the offset in bytes from the start of the text or of the field that is parsed.
    pub(crate) fn at(&self) -> usize {
        self.0.at
    }

    /// Returns the error with this line and column.
    pub(crate) fn into_error(self, line: u64, column: u64) -> RowError {
        RowError::at(line, column, self.0.expected, self.0.found)
    }

    /// Converts the offset from the start of a field, which begins at `offset` in the text, to an
    /// offset in the text.
    #[cold]
    pub(crate) fn in_field_at(mut self, offset: usize) -> Self {
        self.0.at += offset;
        self
    }

    /// Sets the offset. For fields that were unescaped, whose offsets are not those of the text:
    /// the start of the field stands for all of it.
    #[cold]
    pub(crate) fn moved_to(mut self, offset: usize) -> Self {
        self.0.at = offset;
        self
    }
}

/// The reason why a row was not added.
#[derive(Debug)]
pub(crate) enum RowFault {
    /// The row is invalid.
    Text(Fault),
    /// The sink returned an error.
    Sink(nuthatch_snapshot::Error),
}

impl RowFault {
    /// Returns the fault for an error of the sink. A row that exceeds a limit is an invalid row;
    /// `at` is the offset of its key or of its start.
    #[cold]
    pub(crate) fn from_sink(at: usize, error: nuthatch_snapshot::Error) -> Self {
        match error {
            nuthatch_snapshot::Error::Limit(limit) => Self::Text(Fault::new(
                at,
                format!("a {} of at most {}", limit.what, limit.max),
                limit.found.to_string(),
            )),
            error => Self::Sink(error),
        }
    }

    /// Moves the fault as [`Fault::in_field_at`] does.
    #[cold]
    pub(crate) fn in_field_at(self, offset: usize) -> Self {
        match self {
            Self::Text(fault) => Self::Text(fault.in_field_at(offset)),
            sink @ Self::Sink(_) => sink,
        }
    }
}

impl From<Fault> for RowFault {
    fn from(fault: Fault) -> Self {
        Self::Text(fault)
    }
}
