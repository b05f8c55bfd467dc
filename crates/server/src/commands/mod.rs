//! The commands of RESP: what a request does to the cache, and what is answered.
//!
//! A command is a line in the [`table`](Command) and a function over a [`Call`]. It sees its
//! arguments, the cache for the length of a turn, its client and the server, and appends one
//! answer.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all commands have one type, those that never fail too"
)]

mod acl;
mod big;
mod bitfield;
mod bits;
mod call;
mod client_commands;
mod configuration;
mod connection;
mod debug;
mod documentation;
mod execute;
mod expiry;
mod extended;
mod failure;
mod info;
mod introspection;
mod keys;
mod latency;
mod lcs;
mod memory;
mod modify;
mod names;
mod numbers;
mod object;
mod options;
mod ranges;
mod scan;
mod several;
pub(crate) mod slowlog;
mod strings;
pub(crate) mod subcommands;
mod table;
pub(crate) mod transactions;

pub use call::{Args, Call};
pub use debug::Debugging;
pub(crate) use execute::refuse_for_memory;
pub use execute::{OUT_OF_MEMORY, execute, execute_found};
pub use failure::{Failure, Result};
pub use table::{Command, Flags, Found, Keys, all, find, lookup};

use failure::NOT_AN_INTEGER;
