//! The commands of RESP: what a request does to the cache, and what is answered.
//!
//! A command is a line in the [`table`](Command) and a function over a [`Call`]. It sees its
//! arguments, the cache for the length of a turn, its client and the server, and appends one
//! answer.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all commands have one type, those that never fail too"
)]

mod args;
mod call;
mod connection;
mod container;
mod data;
mod execute;
mod failure;
mod modify;
mod name_index;
mod options;
mod run;
mod server;
mod slow_request;
mod table;

pub use args::Args;
pub use call::{Call, Client, Command, Found, Session};
pub(crate) use execute::refuse_for_memory;
pub use execute::{execute, execute_found};
pub(crate) use failure::NOT_AN_INTEGER;
pub use failure::{Failure, Result};
pub use run::OUT_OF_MEMORY;
pub use table::{all, find, lookup};
