//! What is wrong with an input, and where.

use std::borrow::Cow;
use std::fmt;

/// Text that is not what it must be, by its place in an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// Counted from one. Inputs whose rows are no lines count rows.
    pub line: u64,
    /// Characters from the start of the line, counted from one; for columnar inputs the number of
    /// the column.
    pub column: u64,
    /// What must be there.
    pub expected: Cow<'static, str>,
    /// What is there.
    pub found: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, expected, found } = self;
        write!(f, "{line}:{column}: expected {expected}, found {found}")
    }
}

/// Why rows cannot be taken from a chunk.
#[derive(Debug)]
pub enum RowError {
    /// The chunk is wrong at this place.
    Text(Box<TextError>),
    /// The sink cannot take the row.
    Sink(nuthatch_snapshot::Error),
}

impl RowError {
    #[cold]
    pub(crate) fn at(
        line: u64,
        column: u64,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<String>,
    ) -> Self {
        let (expected, found) = (expected.into(), found.into());
        Self::Text(Box::new(TextError { line, column, expected, found }))
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => error.fmt(f),
            Self::Sink(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RowError {}

/// Why inputs cannot be read.
#[derive(Debug)]
pub enum Error {
    /// The options do not fit the inputs.
    Usage(String),
    /// The operating system, or a decompressor, refused.
    Io {
        /// The input.
        input: String,
        /// What was being done.
        act: &'static str,
        /// What was said.
        source: std::io::Error,
    },
    /// The input is wrong at this place.
    Text {
        /// The input.
        input: String,
        /// The place, what must be there and what is.
        error: Box<TextError>,
    },
    /// The input as a whole is not of its format.
    Format {
        /// The input.
        input: String,
        /// What must be there and what is.
        message: String,
    },
    /// The snapshot cannot be made.
    Snapshot(nuthatch_snapshot::Error),
}

impl Error {
    pub(crate) fn io(input: &str, act: &'static str, source: std::io::Error) -> Self {
        Self::Io { input: input.to_owned(), act, source }
    }

    pub(crate) fn format(input: &str, message: impl Into<String>) -> Self {
        Self::Format { input: input.to_owned(), message: message.into() }
    }

    pub(crate) fn row(input: &str, error: RowError) -> Self {
        match error {
            RowError::Text(error) => Self::Text { input: input.to_owned(), error },
            RowError::Sink(error) => Self::Snapshot(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Io { input, act, source } => write!(f, "{input}: {act}: {source}"),
            Self::Text { input, error } => write!(f, "{input}:{error}"),
            Self::Format { input, message } => write!(f, "{input}: {message}"),
            Self::Snapshot(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Snapshot(error) => Some(error),
            _ => None,
        }
    }
}

impl From<nuthatch_snapshot::Error> for Error {
    fn from(error: nuthatch_snapshot::Error) -> Self {
        Self::Snapshot(error)
    }
}

/// The result of scanning some text.
pub(crate) type Scan<T> = Result<T, Fault>;

/// Text that is not what it must be. Boxed, because it is made once in a run and returned by every
/// scanning function of every row.
#[derive(Debug)]
pub(crate) struct Fault(Box<Wrong>);

#[derive(Debug)]
struct Wrong {
    /// Where, from the start of the chunk or field at hand.
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
        Self(Box::new(Wrong { at, expected: expected.into(), found: found.into() }))
    }

    /// Where it is, in bytes from the start of the chunk or field at hand.
    pub(crate) fn at(&self) -> usize {
        self.0.at
    }

    /// The error it is, seen in this line and column.
    pub(crate) fn placed(self, line: u64, column: u64) -> RowError {
        RowError::at(line, column, self.0.expected, self.0.found)
    }

    /// A fault of a field, seen from the chunk that has the field at this offset.
    #[cold]
    pub(crate) fn within(mut self, offset: usize) -> Self {
        self.0.at += offset;
        self
    }

    /// A fault of a field whose text is not the chunk's own: the field's start has to do.
    #[cold]
    pub(crate) fn moved(mut self, offset: usize) -> Self {
        self.0.at = offset;
        self
    }
}

/// Why a row cannot be taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    Fault(Fault),
    Sink(nuthatch_snapshot::Error),
}

impl Refusal {
    /// A sink's error about the row whose key, or else beginning, is at this offset. Limits are the
    /// row's fault, and are told with its place.
    #[cold]
    pub(crate) fn of_row(at: usize, error: nuthatch_snapshot::Error) -> Self {
        match error {
            nuthatch_snapshot::Error::Limit(limit) => Self::Fault(Fault::new(
                at,
                format!("a {} of at most {}", limit.what, limit.max),
                limit.found.to_string(),
            )),
            error => Self::Sink(error),
        }
    }

    /// As [`Fault::within`].
    #[cold]
    pub(crate) fn within(self, offset: usize) -> Self {
        match self {
            Self::Fault(fault) => Self::Fault(fault.within(offset)),
            sink @ Self::Sink(_) => sink,
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
