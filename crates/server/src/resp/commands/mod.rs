//! The commands of RESP.
//!
//! A command is a [`Command`] in the table of its file: name, arity, keys, flags and a function
//! over a [`Call`]. The function gets the arguments, the cache under an epoch guard, the client and
//! the server, and appends one reply. `table.rs` collects the tables. Only `execute.rs` and the
//! driver look up commands by name; the functions of commands do not.

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
mod forward;
mod modify;
mod name_index;
mod options;
mod run;
mod server;
mod slow_request;
mod split;
mod table;

pub use args::Args;
pub use call::{Call, Client, Command, Found, Session};
pub(crate) use execute::may_execute;
pub(crate) use execute::refuse_for_memory;
pub use execute::{execute, execute_found};
pub(crate) use failure::NOT_AN_INTEGER;
pub use failure::{Failure, Result};
pub(crate) use forward::{encode as encode_request, forward};
pub use run::OUT_OF_MEMORY;
pub(crate) use table::writes;
pub use table::{all, find, lookup};
