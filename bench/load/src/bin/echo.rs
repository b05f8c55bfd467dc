//! A server that gives one reply to everything: the floor below the figures of cache servers.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    nuthatch_load::echo_program(env::args_os())
}
