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
mod budget;
mod call;
mod client;
mod client_commands;
mod clients;
mod configuration;
mod connection;
mod counter;
mod debug;
mod documentation;
mod execute;
mod expiry;
mod extended;
mod failure;
mod glob;
mod histogram;
mod info;
mod introspection;
mod keys;
mod latency;
mod lcs;
mod making;
mod memory;
mod metrics;
mod modify;
mod names;
mod numbers;
mod object;
mod options;
mod others;
mod permissions;
mod ranges;
mod rates;
mod scan;
mod server;
mod settings;
mod several;
mod shedding;
mod slowlog;
mod strings;
mod subcommands;
mod table;
mod transactions;
mod turns;
mod users;

pub use budget::MemoryKinds;
pub use call::{Args, Call};
pub use client::Client;
pub use clients::{Clients, Endpoints};
pub use debug::Debugging;
pub(crate) use execute::refuse_for_memory;
pub use execute::{OUT_OF_MEMORY, execute, execute_found};
pub use failure::{Failure, Result};
pub(crate) use making::update;
pub use metrics::{CommandTotals, Metrics, Totals, bucket_end_ns};
pub use others::Other;
pub use permissions::Denied;
pub(crate) use server::TOO_MANY_CLIENTS;
pub use server::{Exposition, Rewrite, Server};
pub use settings::Settings;
pub use table::{Command, Flags, Found, Keys, all, find, lookup};
pub use turns::TurnTotals;
pub use users::{User, Users, UsersError};

use failure::NOT_AN_INTEGER;
