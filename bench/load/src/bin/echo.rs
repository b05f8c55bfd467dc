//! A server with a constant reply, whose cost is the lower bound for cache servers.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    nuthatch_load::echo_program(env::args_os())
}
