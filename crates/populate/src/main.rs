//! The `nuthatch-populate` command, which `nuthatch populate` starts: arguments in, exit status
//! out.

mod command;

use clap::Parser;
use command::{Arguments, Failure};
use std::process::ExitCode;

/// The exit statuses, which the help page documents.
mod status {
    pub(crate) const GATES: u8 = 1;
    pub(crate) const USAGE: u8 = 2;
    pub(crate) const FAILURE: u8 = 3;
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.run() {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => fail(&message, status::USAGE),
        Err(Failure::Job(error @ nuthatch_populate::Error::Gates(_))) => {
            fail(&error.to_string(), status::GATES)
        }
        Err(Failure::Job(error)) => fail(&error.to_string(), status::FAILURE),
        Err(Failure::Output(error)) => fail(&format!("<stdout>: write: {error}"), status::FAILURE),
    }
}

fn fail(message: &str, status: u8) -> ExitCode {
    nuthatch_terminal::print_message(message);
    status.into()
}
