//! What all connections share: clients, users, settings, metrics, and memory.

mod client;
pub(crate) mod clients;
pub(crate) mod counter;
pub(crate) mod glob;
pub(crate) mod histogram;
mod iterations;
mod memory_kinds;
pub(crate) mod metrics;
pub(crate) mod new_value;
pub(crate) mod other_requests;
pub(crate) mod permissions;
mod rates;
mod server;
pub(crate) mod settings;
mod shedding;
pub(crate) mod users;

pub use client::Client;
pub(crate) use client::{Answers, State};
pub use clients::{Clients, Endpoints};
pub use iterations::TurnTotals;
pub use memory_kinds::MemoryKinds;
pub use metrics::{CommandTotals, Metrics, Totals, bucket_end_ns};
pub(crate) use new_value::update;
pub use other_requests::Other;
pub use permissions::Denied;
pub(crate) use server::TOO_MANY_CLIENTS;
pub use server::{Exposition, Rewrite, Server};
pub use settings::Settings;
pub use users::{User, Users, UsersError};
