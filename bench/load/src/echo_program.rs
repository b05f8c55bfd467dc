//! The command line of the echo server. `race` has it, too, to need no other file than its own.

use crate::address::Address;
use crate::echo::{Echo, Reply};
use crate::error::Error;
use crate::{arguments, cpu, signals};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: &str = "\
A server that does nothing: for each request of a fixed length it sends one fixed reply, through \
an io_uring as a cache server would. Its figures are the floor: what a cache server takes beyond \
them is its own work, what it takes up to them is the kernel's.";

const NOTES: &str = "\
Examples:
  echo --address 127.0.0.1:7000 --core 0                   replies to load's gets of 100 bytes
  echo --address 127.0.0.1:7000 --request 144 --reply ok   and to its sets of 100 bytes

Prints where it listens, and serves until a signal ends it. In RESP, a get of load has 36 bytes, \
and a set of 100 bytes 144.

Exit status:
  0  a signal ended it
  2  the command line is wrong
  3  it cannot listen there";

/// A server that gives one reply to everything.
#[derive(Debug, Parser)]
#[command(name = "echo", long_about = ABOUT, after_long_help = NOTES, max_term_width = 100)]
struct Options {
    /// Where to listen: HOST:PORT or unix:PATH; port 0 is any that is free
    #[arg(long, default_value = "127.0.0.1:0")]
    address: Address,
    /// Bytes of each request
    #[arg(long, value_name = "BYTES", default_value_t = 36)]
    request: usize,
    /// The reply: bytes of a value, sent as RESP's bulk string, or ok, RESP's acknowledgement
    #[arg(long, value_name = "BYTES", default_value = "100")]
    reply: Reply,
    /// Stay on this core
    #[arg(long, value_name = "NUMBER")]
    core: Option<usize>,
}

/// Runs the echo server with these arguments, of which the first is its name.
pub fn echo_program(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let options: Options = match arguments::parsed(arguments) {
        Ok(options) => options,
        Err(status) => return status,
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => arguments::failed("echo", &error),
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let stop = signals::stop_flag()?;
    if let Some(core) = options.core {
        cpu::pin(core)?;
    }
    let echo = Echo::bind(&options.address, options.request, options.reply)?;
    println!("{}", echo.address());
    echo.serve(&stop)
}
