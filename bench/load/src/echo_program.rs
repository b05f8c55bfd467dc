//! The command line of the echo server. The program `race` includes it, so that it needs no second
//! program file.

use crate::address::Address;
use crate::echo::{Echo, Reply};
use crate::error::Error;
use crate::{arguments, cpu, signals};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: &str = "\
A server without a cache: it sends a constant reply to each request of a fixed length, through an \
io_uring as a cache server would. Its processor time is mostly kernel time, and is a lower bound. \
The additional time of a cache server is the cost of the cache itself.";

const NOTES: &str = "\
Examples:
  echo --address 127.0.0.1:7000 --core 0                   for gets of 100 bytes
  echo --address 127.0.0.1:7000 --request 144 --reply ok   for sets of 100 bytes

Prints its address, and serves until a signal ends it. In RESP, a get of the program load has 36 \
bytes, and a set of 100 bytes has 144 bytes.

Exit status:
  0  a signal ended it
  2  the command line is wrong
  3  listening on the address failed";

/// A server with a constant reply.
#[derive(Debug, Parser)]
#[command(name = "echo", long_about = ABOUT, after_long_help = NOTES, max_term_width = 100)]
struct Options {
    /// Address to listen on: HOST:PORT or unix:PATH; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:0")]
    address: Address,
    /// Length of each request in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 36)]
    request: usize,
    /// Reply: the length of a value in bytes, sent as a RESP bulk string, or ok for +OK
    #[arg(long, value_name = "BYTES", default_value = "100")]
    reply: Reply,
    /// Pin the server to this core
    #[arg(long, value_name = "NUMBER")]
    core: Option<usize>,
}

/// Runs the echo server with these arguments. The first argument is the program name.
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
