//! The errors of this crate: invalid inputs, with their positions, and failed reads.

use std::borrow::Cow;
use std::fmt;

/// Invalid text, with its position in an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// The line, counted from one. For Parquet it is the row, for AxonCache the record.
    pub line: u64,
    /// The character in the line, counted from one. For Parquet it is the number of the column.
    pub column: u64,
    /// What was expected at this position.
    pub expected: Cow<'static, str>,
    /// What was found instead.
    pub found: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, expected, found } = self;
        write!(f, "{line}:{column}: expected {expected}, found {found}")
    }
}

/// The reason why a parser stopped.
#[derive(Debug)]
pub enum RowError {
    /// The text is invalid.
    Text(Box<TextError>),
    /// The sink returned an error.
    Sink(nuthatch_snapshot::Error),
}

impl RowError {
    /// Returns the error for invalid text at this line and column.
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

/// An error of reading inputs.
#[derive(Debug)]
pub enum Error {
    /// The options do not fit the inputs. Messages name options like the flags of `nuthatch build`.
    Usage(String),
    /// An input could not be opened, read or decompressed.
    Io {
        /// The input.
        input: String,
        /// The operation that failed.
        operation: &'static str,
        /// The error of the system or the decompressor.
        source: std::io::Error,
    },
    /// An input has invalid text.
    Text {
        /// The input.
        input: String,
        /// The position, what is expected there and what was found.
        error: Box<TextError>,
    },
    /// An input as a whole is invalid for its format, such as a Parquet file that is truncated.
    Format {
        /// The input.
        input: String,
        /// What was expected and what was found.
        message: String,
    },
    /// The writer of the snapshot returned an error.
    Snapshot(nuthatch_snapshot::Error),
}

impl Error {
    pub(crate) fn io(input: &str, operation: &'static str, source: std::io::Error) -> Self {
        Self::Io { input: input.to_owned(), operation, source }
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
            Self::Io { input, operation, source } => write!(f, "{input}: {operation}: {source}"),
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
