//! A cluster of cache servers: which node owns which slot, kept in etcd.
//!
//! The crate has no consensus of its own, and no code of the cache server.
//!
//! - [`slot`]: keys belong to slots exactly as in Redis Cluster.
//! - [`map`]: the nodes, and the owner of each slot, at a revision of etcd.
//! - [`plan`]: who should own which slot.
//! - [`lease`]: until when a node may serve its slots.
//! - [`member`]: a node's part in the cluster, as a state machine.
//! - [`request`]: requests to etcd, without a transport.
//! - `etcd`: a client of etcd, with the feature of the same name.
//! - [`memory_etcd`]: an etcd in memory, for tests.
//! - [`simulate`]: a simulation of large clusters.
//! - `membership`: the task that connects a member with etcd and with the cache server, with the
//!   feature `etcd`.

pub mod boot_clock;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod keys;
pub mod lease;
pub mod map;
pub mod member;
#[cfg(feature = "etcd")]
pub mod membership;
pub mod memory_etcd;
pub mod node;
pub mod node_id;
pub mod plan;
pub mod request;
pub mod simulate;
pub mod slot;
mod text;

pub use text::InvalidText;
