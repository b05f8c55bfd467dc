//! The commands of RESP: what a request does to the cache, and what is answered.
//!
//! A command is a line in the [`table`](Command) and a function over a [`Call`]. It sees its
//! arguments, the cache for the length of a turn, its client and the server, and appends one
//! answer.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all commands have one type, those that never fail too"
)]

mod call;
pub(crate) mod connection;
mod data;
mod execute;
mod failure;
mod modify;
mod name_index;
mod options;
pub(crate) mod server;
pub(crate) mod subcommands;
mod table;

pub use call::{Args, Call};
pub(crate) use execute::refuse_for_memory;
pub use execute::{OUT_OF_MEMORY, execute, execute_found};
pub(crate) use failure::NOT_AN_INTEGER;
pub use failure::{Failure, Result};
pub use server::debug::Debugging;
pub use table::{Command, Flags, Found, Keys, all, find, lookup};
