//! What all connections share: clients, users, settings, metrics, and memory.

mod big_keys;
pub(crate) mod catalog;
mod client;
pub(crate) mod clients;
pub(crate) mod counter;
mod debug_access;
mod disk_report;
pub(crate) mod glob;
pub(crate) mod histogram;
mod hot_keys;
mod iterations;
mod kept_key;
mod memcached;
mod memory_kinds;
pub(crate) mod metrics;
pub(crate) mod new_value;
pub(crate) mod other_requests;
pub(crate) mod permissions;
mod rates;
mod server;
pub(crate) mod settings;
mod shedding;
pub(crate) mod slowlog;
mod snapshots;
pub(crate) mod users;
mod value_limit;
pub(crate) mod values;

pub(crate) use catalog::{Catalog, CommandInfo, RESP_COMMANDS};
pub use catalog::{Flags, Keys};
pub use client::{Client, Session, Version};
pub(crate) use client::{ClusterWait, ReplyMode, State};
pub(crate) use clients::ClientSummary;
pub use clients::{Clients, Endpoints, TooManyClients};
pub use debug_access::Debugging;
pub(crate) use disk_report::DISK_FIELDS;
pub(crate) use hot_keys::Sampler;
pub use iterations::IterationTotals;
pub(crate) use memcached::ForwardedError;
pub use memcached::MemcachedState;
pub use memory_kinds::MemoryKinds;
pub use metrics::{CommandTotals, Metrics, Totals, bucket_end_ns};
pub(crate) use new_value::update;
pub use other_requests::OtherRequest;
pub use permissions::Denied;
pub(crate) use permissions::Permissions;
pub use server::{Exposition, LiveTables, Rewrite, Server};
pub(crate) use server::{ForwardedRequests, MayExecute};
pub use settings::Settings;
pub use snapshots::{OpenError, SnapshotMemory, SnapshotSource, Snapshots};
pub(crate) use snapshots::{
    PrefetchedKey, ReadError, SNAPSHOT_FIELDS, SnapshotField, SnapshotKey, SnapshotReport, is_list,
    is_snapshot_cursor,
};
pub use users::{User, Users, UsersError};
pub use value_limit::ValueLimit;
