//! The errors of a job.

use crate::gate_report::GateReport;
use std::fmt;
use std::path::PathBuf;

/// An error of a job.
#[derive(Debug)]
pub enum Error {
    /// The job contradicts itself, its sources or its options. The message names the place.
    Job(String),
    /// A source cannot be read, or has a row that cannot be stored.
    Source {
        /// The source, without secrets.
        source: String,
        /// What failed, or what was expected and found.
        message: String,
        /// Whether it can pass, such as a lost connection, so that the job can run again.
        is_transient: bool,
    },
    /// Several rows have the same key.
    Duplicate(String),
    /// Gates did not let the snapshot pass: the outcome of all of them. Nothing was published.
    Gates(Vec<GateReport>),
    /// The snapshot cannot be written or read.
    Snapshot(nuthatch_snapshot::Error),
    /// The snapshot cannot be published, or the last generation cannot be fetched.
    Delivery(nuthatch_delivery::Error),
    /// A thread or a file of the program itself failed.
    System(String),
    /// The job was interrupted by a signal before anything was published.
    Interrupted,
    /// The job was interrupted by a signal during its publication to a destination, which may or
    /// may not have the generation. The file of the output is the new one.
    InterruptedPublication {
        /// The file of the output.
        output: PathBuf,
        /// The destination, without secrets.
        destination: String,
    },
}

/// The result of a part of a job.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns an error of a source that stays when the job runs again.
    pub(crate) fn source(source: &str, message: impl Into<String>) -> Self {
        Self::Source { source: source.to_owned(), message: message.into(), is_transient: false }
    }

    /// Returns the same error of a source, as one that can pass.
    pub(crate) fn into_transient(self) -> Self {
        match self {
            Self::Source { source, message, .. } => {
                Self::Source { source, message, is_transient: true }
            }
            other => other,
        }
    }

    /// Returns whether the job can succeed when it runs again without any change.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Source { is_transient: true, .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(message) | Self::Duplicate(message) | Self::System(message) => {
                f.write_str(message)
            }
            Self::Source { source, message, .. } => write!(f, "{source}: {message}"),
            Self::Gates(reports) => {
                let failed = || reports.iter().filter(|report| !report.passed);
                let gates = if failed().count() == 1 { "gate" } else { "gates" };
                write!(f, "{} {gates} failed, so nothing was published:", failed().count())?;
                failed().try_for_each(|report| write!(f, "\n  {report}"))
            }
            Self::Snapshot(error) => error.fmt(f),
            Self::Delivery(nuthatch_delivery::Error::Conflict { manifest }) => write!(
                f,
                "{manifest}: another run, publisher or rollback replaced the manifest during this \
                 run; nothing was published. Look at its generations, then run the job again"
            ),
            Self::Delivery(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted; nothing was published"),
            Self::InterruptedPublication { output, destination } => write!(
                f,
                "interrupted during the publication; {} was replaced. \"nuthatch generations \
                 {destination}\" shows whether it was published there",
                output.display()
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Snapshot(error) => Some(error),
            Self::Delivery(error) => Some(error),
            _ => None,
        }
    }
}

impl From<nuthatch_snapshot::Error> for Error {
    fn from(error: nuthatch_snapshot::Error) -> Self {
        Self::Snapshot(error)
    }
}

impl From<nuthatch_delivery::Error> for Error {
    fn from(error: nuthatch_delivery::Error) -> Self {
        Self::Delivery(error)
    }
}
