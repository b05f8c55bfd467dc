//! The command line: arguments, progress, and the loop of a schedule.

mod arguments;
mod log_args;
mod manual;
mod print;
mod schedule;
mod signals;
mod simple;

pub(crate) use arguments::Arguments;

/// The failure of the command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments contradict each other.
    Usage(String),
    /// The job failed.
    Job(nuthatch_populate::Error),
    /// Standard output cannot be written.
    Output(std::io::Error),
    /// The reader of standard output closed it, and needs no more.
    ClosedPipe,
}

impl From<nuthatch_populate::Error> for Failure {
    fn from(error: nuthatch_populate::Error) -> Self {
        Self::Job(error)
    }
}
